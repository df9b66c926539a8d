// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "builder/compile/cache.h"
#include "builder/compile/compile.h"
#include "doctor/base/result.h"

namespace scankit {

// The label of one file of the device source is this and its path; "source" is the whole text.
inline constexpr const char* kSourcePart = "source ";

// The changes from one list of inputs to another, for people: "flag -DX is new", "source forward.cuh
// changed". Empty if they are equal.
std::vector<std::string> changes_in_words(const Inputs& before, const Inputs& after);

// Why an image is not taken from the cache. NeverBuilt: this slot was never built. Changed: `changes` says
// what. Gone: the same inputs were built before, but the entry was trimmed or removed. Damaged: the entry's
// bytes were not right.
struct Miss {
  std::string unit, target;
  enum class Kind { NeverBuilt, Changed, Gone, Damaged } kind = Kind::NeverBuilt;
  std::vector<std::string> changes;  // Changed
  std::string entry;                 // Damaged: the file
};
// One line for all images of one target with the same reason.
std::vector<std::string> misses_in_words(const std::vector<Miss>& misses);

// One image of the explanation: for which unit and target, and all inputs of its key.
struct ExplainedImage {
  std::string unit, target;
  Inputs inputs;
  std::string key;     // Key::digest() of the inputs
  std::string sha256;  // of the image; "" where nobody said
};

// What a build depends on: `--explain` prints it, and a manifest holds it.
struct Explanation {
  std::string module;
  Inputs inputs;  // of the module beside its images: the host module, scankit itself
  std::vector<ExplainedImage> images;
};

// Labels and values, for programs and for diff: the same in every language.
std::string explanation_text(const Explanation& explanation);

// The fields "module", "inputs", "image_inputs" (those that all images share) and "images" of a manifest and
// of `--explain --json`.
void add_explanation(nlohmann::ordered_json& json, const Explanation& explanation);
// Reads a manifest, a module with one inside, or the output of `--explain --json`. Implemented in
// module/manifest.cc, which knows how to find the manifest in a module.
Result<Explanation> read_explanation(const std::string& path);

// `--explain OTHER`: every difference, label by label, in words. Empty where both depend on the same.
std::vector<std::string> compare_explanations(const std::string& other_name, const Explanation& other,
                                              const Explanation& here);

}  // namespace scankit

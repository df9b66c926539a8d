// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "builder/compile/cache.h"
#include "builder/compile/fatbin.h"
#include "doctor/base/result.h"

namespace scankit {

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

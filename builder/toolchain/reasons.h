// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "builder/compile/cache.h"

namespace scankit {

// Label of the file PATH of the device source, of which the label "source" names all together.
inline constexpr const char* kSourcePart = "source ";

// The changes from one list of inputs to another, for people: "flag -DX is new", "source forward.cuh
// changed". Empty where they are the same.
std::vector<std::string> changes_in_words(const Inputs& before, const Inputs& after);

// Why an image is not taken from the cache.
struct Miss {
  std::string unit, target;
  enum class Kind { NeverBuilt, Changed, Gone, Damaged } kind = Kind::NeverBuilt;
  std::vector<std::string> changes;  // Changed
  std::string entry;                 // Damaged: the file
};
// One line for all images with one reason.
std::vector<std::string> misses_in_words(const std::vector<Miss>& misses);

}  // namespace scankit

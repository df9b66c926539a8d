// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "builder/compile/cache.h"

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

}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace scankit {

// The one of `known` that a slip of the keyboard made `word` of: by the number of letters to change, add,
// drop or swap with their neighbour, at most a third of the word. "" where none is near.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

}  // namespace scankit

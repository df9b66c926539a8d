// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace scankit {

// A step as it is at one moment.
struct ProgressStep {
  std::string what;
  std::size_t done = 0, total = 0;   // things; total 0: how many is not known
  std::uint64_t have = 0, size = 0;  // bytes; both 0: nothing is downloaded
  std::chrono::seconds age{0};       // since it began
  std::string limit;                 // "given up after 60 s"; "": it is waited for as long as it takes
};

// Columns of a terminal that the text takes: letters of East Asia take two, marks that combine none.
std::size_t columns_of(std::string_view text);

// Cut at its end, with "..." where there is room for that, so that it takes at most `columns`.
std::string cut_to(std::string_view text, std::size_t columns);

// One line about all that goes on, the outermost step first:
//   [12/90, 34 s] q011-fp32-b2  7 s (given up after 60 s)
// What is narrow loses the end of the words first, then the limit; numbers stay longest.
std::string progress_text(const std::vector<ProgressStep>& steps, std::size_t columns);

}  // namespace scankit

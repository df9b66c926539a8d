// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace scankit::logs {

// Finds which of many short texts a line contains, in one pass whose time does not depend on their number
// (Aho and Corasick, 1975). ASCII letters match in either case.
class LiteralFinder {
 public:
  // The texts in lower case. The answer may be too much, never too little, for the sake of a small table: only the
  // first kLongest bytes of a text count, all digits are one, and all bytes that are not ASCII.
  explicit LiteralFinder(const std::vector<std::string>& literals);
  static constexpr std::size_t kLongest = 16;

  // Appends the indices of the texts to `found`, one perhaps several times.
  void find(std::string_view line, std::vector<int>& found) const;

 private:
  struct Trie;
  void number_bytes(const std::vector<std::string>& literals);
  // The text as the trie has it: the classes of its first bytes.
  std::string classes_of(const std::string& literal) const;
  void fill_table(const Trie& trie);

  // Bytes of one class are not told apart; 0 is that of the bytes that no text has. Each state has a row of one entry
  // for each class: where the row of the next state begins, with kEnds set if a text ends there.
  static constexpr std::uint32_t kEnds = 1u << 31;
  std::array<std::uint8_t, 256> class_{};
  std::uint32_t classes_ = 1;
  std::vector<std::uint32_t> table_;
  std::vector<std::vector<int>> ends_;  // by state
};

}  // namespace scankit::logs

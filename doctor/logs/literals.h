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
  // first kLongest bytes of a text count, and all bytes that are not ASCII are one.
  explicit LiteralFinder(const std::vector<std::string>& literals);
  static constexpr std::size_t kLongest = 16;

  // What one line after another needs, so that no memory is asked for each. To be used with one finder.
  struct Marks {
    std::vector<std::uint32_t> seen;  // by place: the number of the last line that came there
    std::uint32_t line = 0;
  };
  // The places where texts end in the line, each once: which texts, says ends_at(). Few lines have many.
  void find(std::string_view line, Marks& marks, std::vector<int>& places) const;
  // Indices of the texts; two places may have some in common.
  const std::vector<int>& ends_at(int place) const { return ends_[static_cast<std::size_t>(place)]; }

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

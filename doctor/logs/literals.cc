// SPDX-License-Identifier: Apache-2.0
#include "doctor/logs/literals.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace scankit::logs {

// The texts as a tree of classes of bytes. `fallback`: the longest proper suffix of what a node spells that another node
// spells.
struct LiteralFinder::Trie {
  std::vector<std::map<unsigned char, int>> children{1};
  std::vector<int> fallback{0};
  std::vector<std::vector<int>> ends{1};
  std::vector<int> by_level;  // the nodes, the less deep ones first; made by link()

  void add(std::string_view text, int index) {
    int node = 0;
    for (const char c : text) {
      const auto [child, is_new] =
          children[static_cast<std::size_t>(node)].try_emplace(static_cast<unsigned char>(c), 0);
      if (is_new) child->second = static_cast<int>(children.size());
      node = child->second;
      if (!is_new) continue;
      children.emplace_back();
      fallback.push_back(0);
      ends.emplace_back();
    }
    ends[static_cast<std::size_t>(node)].push_back(index);
  }

  int step(int node, unsigned char byte) const {
    for (;; node = fallback[static_cast<std::size_t>(node)]) {
      const auto& here = children[static_cast<std::size_t>(node)];
      if (const auto child = here.find(byte); child != here.end()) return child->second;
      if (node == 0) return 0;
    }
  }

  // Level by level, since a node's fallback is less deep than the node. What ends at the fallback ends here too.
  void link() {
    std::vector<int> level{0};
    while (!level.empty()) {
      by_level.insert(by_level.end(), level.begin(), level.end());
      std::vector<int> next;
      for (const int node : level)
        for (const auto& [byte, child] : children[static_cast<std::size_t>(node)]) {
          const auto at = static_cast<std::size_t>(child);
          fallback[at] = node == 0 ? 0 : step(fallback[static_cast<std::size_t>(node)], byte);
          const auto& shorter = ends[static_cast<std::size_t>(fallback[at])];
          ends[at].insert(ends[at].end(), shorter.begin(), shorter.end());
          next.push_back(child);
        }
      level = std::move(next);
    }
  }
};

void LiteralFinder::number_bytes(const std::vector<std::string>& literals) {
  const auto take = [&](unsigned first, unsigned last) {
    for (unsigned byte = first; byte <= last; ++byte) class_[byte] = static_cast<std::uint8_t>(classes_);
    ++classes_;
  };
  for (const std::string& literal : literals)
    for (const char c : literal.substr(0, kLongest)) {
      const auto byte = static_cast<unsigned char>(c);
      if (class_[byte] != 0) continue;
      if (byte >= 0x80)
        take(0x80, 0xff);
      else
        take(byte, byte);
    }
  for (unsigned upper = 'A'; upper <= 'Z'; ++upper) class_[upper] = class_[upper - 'A' + 'a'];
}

std::string LiteralFinder::classes_of(const std::string& literal) const {
  std::string text = literal.substr(0, kLongest);
  for (char& c : text) c = static_cast<char>(class_[static_cast<unsigned char>(c)]);
  return text;
}

// A node's row is that of its fallback, which is filled before it, but for its own children.
void LiteralFinder::fill_table(const Trie& trie) {
  table_.assign(trie.children.size() * classes_, 0);
  for (const int node : trie.by_level) {
    const auto at = static_cast<std::size_t>(node);
    const auto row = table_.begin() + static_cast<std::ptrdiff_t>(at * classes_);
    if (node != 0)
      std::copy_n(table_.begin() + trie.fallback[at] * static_cast<std::ptrdiff_t>(classes_), classes_, row);
    for (const auto& [byte_class, child] : trie.children[at]) {
      const bool ends = !trie.ends[static_cast<std::size_t>(child)].empty();
      row[byte_class] = static_cast<std::uint32_t>(child) * classes_ | (ends ? kEnds : 0);
    }
  }
}

LiteralFinder::LiteralFinder(const std::vector<std::string>& literals) {
  number_bytes(literals);
  Trie trie;
  for (std::size_t i = 0; i < literals.size(); ++i) trie.add(classes_of(literals[i]), static_cast<int>(i));
  trie.link();
  fill_table(trie);
  ends_ = std::move(trie.ends);
}

void LiteralFinder::find(std::string_view line, Marks& marks, std::vector<int>& places) const {
  if (marks.seen.empty() || ++marks.line == 0) {
    marks.seen.assign(ends_.size(), 0);
    marks.line = 1;
  }
  std::uint32_t row = 0;
  for (const char c : line) {
    const std::uint32_t next = table_[row + class_[static_cast<unsigned char>(c)]];
    row = next & ~kEnds;
    if ((next & kEnds) == 0) continue;
    const std::uint32_t state = row / classes_;
    if (std::exchange(marks.seen[state], marks.line) != marks.line) places.push_back(static_cast<int>(state));
  }
}

}  // namespace scankit::logs

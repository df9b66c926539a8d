// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <re2/filtered_re2.h>
#include <re2/re2.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "doctor/logs/literals.h"

namespace scankit::logs {

// Many patterns, of which a line matches few. Most lines contain no text that some pattern cannot do without, and
// are done after one pass that looks for these texts. RE2 does not backtrack and does not recurse, so the time for a
// hostile line is linear in its length.
class RuleFilter {
 public:
  // The patterns are compiled into the program: one that RE2 refuses is a bug, and throws.
  RuleFilter(const std::vector<std::string>& patterns, const re2::RE2::Options& options);
  // What one log has shown so far, for its next lines: many have the same texts as one before. Bounded.
  struct Memo {
    struct Candidates {
      std::vector<int> patterns;
      unsigned lines = 0;
      std::unique_ptr<re2::RE2> any;  // all of them as one; null for a few patterns, and before many lines
    };
    std::map<std::vector<int>, Candidates> by_places;  // of literals that a line has
    unsigned compiled = 0;                             // of `any`, kMostCompiled at most
    std::vector<int> places;
    LiteralFinder::Marks marks;
  };
  static constexpr unsigned kMostCompiled = 32;  // each takes megabytes
  // Indices of the patterns that the line matches, in ascending order.
  std::vector<int> match(const std::string& line, Memo& memo) const;
  const re2::RE2& pattern(int index) const { return patterns_.GetRE2(index); }

 private:
  Memo::Candidates candidates_with(const std::vector<int>& places) const;
  std::unique_ptr<re2::RE2> one_of(const std::vector<int>& patterns) const;
  std::vector<std::string> literals_of_unfiltered(const re2::RE2::Options& options) const;

  re2::RE2::Options options_;
  re2::FilteredRE2 patterns_;
  // First the literals of patterns_, and behind them those of unfiltered_.
  std::unique_ptr<LiteralFinder> literals_;
  int literals_of_patterns_ = 0;
  // The patterns without a literal that is long enough. They are tried where a line has one of the shorter texts
  // that they need, or on every line if one of them needs none.
  std::vector<int> unfiltered_;
  bool always_ = false;
};

}  // namespace scankit::logs

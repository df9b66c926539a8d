// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <re2/re2.h>
#include <re2/set.h>

#include <memory>
#include <string>
#include <vector>

#include "doctor/knowledge/log_rules.h"
#include "doctor/logs/classify.h"

namespace scankit {

// The rules as automata: RE2 has no recursion and no backtracking, so a hostile line costs its length.
class Matcher {
 public:
  Matcher();
  // Indices of the rules whose pattern the line matches, in the order of the table.
  std::vector<int> match(const std::string& line) const;
  Captures captures(int rule, const std::string& line) const;
  bool after_matches(int rule, const std::string& line) const;
  bool looks_like_error(const std::string& line) const { return re2::RE2::PartialMatch(line, *error_); }
  bool looks_like_build(const std::string& line) const { return re2::RE2::PartialMatch(line, *build_); }

 private:
  std::unique_ptr<re2::RE2::Set> set_;
  std::vector<std::unique_ptr<re2::RE2>> patterns_, after_;
  std::unique_ptr<re2::RE2> error_, build_;
};
const Matcher& matcher();

}  // namespace scankit

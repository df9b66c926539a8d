// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/base/version.h"

namespace scankit {

// Which versions will do: clauses as in PEP 440 with commas between them,
// each of which must hold. ">=2.11,<3", "==2.11.*", "~=2.11.1", "!=2.11.2";
// a bare "2.11.*" or "2.11.0" means "==". A range without clauses takes any.
class VersionRange {
 public:
  static Result<VersionRange> parse(std::string_view text);
  bool empty() const { return clauses_.empty(); }
  // As PEP 440 orders them: a pre-release comes before its release. The local part ("+cu130") counts only in
  // a clause that names one.
  bool contains(const Version& version) const;
  // Nothing where `version` is no version.
  std::optional<bool> contains(std::string_view version) const;
  // The oldest version that a clause names as one that may do, as it was written; "" where there is none.
  std::string least() const;
  const std::string& text() const { return text_; }  // as it was written
  bool operator==(const VersionRange& other) const { return text_ == other.text_; }

 private:
  struct Clause {
    std::string op;  // "==", "!=", ">=", "<=", ">", "<", "~="
    Version version;
    bool wildcard = false;  // "==2.11.*"
    std::string text;       // of the version, as it was written
  };
  static Result<Clause> parse_clause(std::string_view text);
  static bool holds(const Clause& clause, const Version& version);
  std::string text_;
  std::vector<Clause> clauses_;
};

}  // namespace scankit

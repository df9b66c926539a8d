// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "doctor/base/say.h"
#include "doctor/report/escape.h"
#include "envspec/spec/spec.h"

// The version specifiers of PEP 440, without its arbitrary equality (===) and without epochs. The order
// of two versions is pep440_order() of doctor/base/version.h; this file adds what each operator makes
// of that order.
namespace scankit::envspec {
namespace {

// Operators of two characters come first: the parser takes the first one that matches.
constexpr std::array<std::string_view, 7> kOperators = {"==", "!=", ">=", "<=", "~=", ">", "<"};

std::string_view without_spaces(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

Error no_range(std::string_view text) {
  return {
      Errc::Malformed, message("\"{}\" is not a version range", report::plain(text, false)),
      message("write versions with ==, !=, >=, <=, >, < or ~= before them and commas between them, such as "
              "\">=2.11,<3\" or \"2.11.*\"")};
}

// What may follow the digits: "+cu130", "rc1", ".post2". The same letters as in form_pattern().
bool is_suffix(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
           c == '+' || c == '-' || c == '_';
  });
}

// "+cu130" of "2.11.0+cu130"; "" without a local part.
std::string_view local_part(const Version& version) {
  const auto plus = version.suffix.find('+');
  return plus == std::string::npos ? std::string_view() : std::string_view(version.suffix).substr(plus);
}

// Compares numbers, so that "2.1.*" does not match 2.11. Parts that `version` does not have count as 0.
bool starts_with(const Version& version, const Version& prefix) {
  for (std::size_t i = 0; i < prefix.release.size(); ++i)
    if (version.part(i) != prefix.release[i]) return false;
  return true;
}

}  // namespace

// A clause without an operator means "==". PEP 440 allows ".*" after == and != only, and wants at least
// two numbers after ~=, since it drops the last one.
Result<VersionRange::Clause> VersionRange::parse_clause(std::string_view text) {
  Clause clause{.op = "==", .version = {}};
  std::string_view rest = without_spaces(text);
  for (const std::string_view op : kOperators)
    if (rest.starts_with(op)) {
      clause.op = op;
      rest = without_spaces(rest.substr(op.size()));
      break;
    }
  if (rest.ends_with(".*")) {
    clause.wildcard = true;
    rest.remove_suffix(2);
  }
  const auto version = Version::parse(rest);
  const bool fits = version && is_suffix(version->suffix) && (!clause.wildcard || version->suffix.empty());
  if (!fits) return no_range(text);
  clause.version = *version;
  clause.text = rest;
  const bool equality = clause.op == "==" || clause.op == "!=";
  if (clause.wildcard && !equality) return no_range(text);
  if (clause.op == "~=" && clause.version.release.size() < 2) return no_range(text);
  return clause;
}

// An empty text, or one that ends in a comma, is an error here: the loop also visits the empty clause
// after the last comma. The limit on the length keeps error messages and work small.
Result<VersionRange> VersionRange::parse(std::string_view text) {
  constexpr std::size_t kLongest = 256;
  if (text.size() > kLongest) return no_range(text.substr(0, 40));
  VersionRange range;
  range.text_ = text;
  for (std::size_t at = 0; at <= text.size();) {
    const auto comma = std::min(text.find(',', at), text.size());
    auto clause = parse_clause(text.substr(at, comma - at));
    if (!clause) return no_range(text);
    range.clauses_.push_back(*std::move(clause));
    at = comma + 1;
  }
  return range;
}

bool VersionRange::holds(const Clause& clause, const Version& version) {
  const auto order = pep440_order(version, clause.version);
  if (clause.op == ">=") return std::is_gteq(order);
  if (clause.op == "<=") return std::is_lteq(order);
  if (clause.op == ">")  // PEP 440: ">2.11" leaves 2.11.post1 out, too
    return std::is_gt(order) && !(is_postrelease(version) && !is_postrelease(clause.version) &&
                                  std::is_eq(version <=> clause.version));
  if (clause.op == "<")  // PEP 440: "<2.12" leaves the pre-releases of 2.12 out, too
    return std::is_lt(order) && !(version.is_prerelease() && !clause.version.is_prerelease() &&
                                  std::is_eq(version <=> clause.version));
  if (clause.op == "~=") {
    // "~=2.11.1" means ">=2.11.1, ==2.11.*".
    Version prefix{clause.version.release, ""};
    prefix.release.pop_back();
    return std::is_gteq(order) && starts_with(version, prefix);
  }
  // A clause without a local part takes any build ("==2.11.0" takes 2.11.0+cu130); one with a local
  // part takes only that build.
  const bool same_local =
      local_part(clause.version).empty() || local_part(clause.version) == local_part(version);
  const bool equal = clause.wildcard ? starts_with(version, clause.version) : std::is_eq(order) && same_local;
  return (clause.op == "==") == equal;
}

bool VersionRange::contains(const Version& version) const {
  return std::ranges::all_of(clauses_, [&](const Clause& clause) { return holds(clause, version); });
}

// The largest of the lower bounds, since every clause must hold. ">" is left out: it excludes the
// version that it names.
std::string VersionRange::least() const {
  const Clause* best = nullptr;
  for (const Clause& clause : clauses_) {
    const bool floor = clause.op == ">=" || clause.op == "~=" || clause.op == "==";
    if (floor && (best == nullptr || std::is_gt(pep440_order(clause.version, best->version)))) best = &clause;
  }
  return best == nullptr ? "" : best->text;
}

std::optional<bool> VersionRange::contains(std::string_view version) const {
  const auto parsed = Version::parse(version);
  if (!parsed) return std::nullopt;
  return contains(*parsed);
}

}  // namespace scankit::envspec

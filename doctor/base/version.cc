// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/version.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>

#include "doctor/base/text.h"

namespace scankit {
namespace {

bool is_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

// The part of a version after its release number, as numbers that sort as PEP 440 demands. It
// understands the spellings that PEP 440 normalises: alternative words, upper case, other separators, an
// implicit post release.
struct Stages {
  int phase = 0;  // 1 alpha, 2 beta, 3 release candidate; 0: none
  std::uint64_t pre = 0, post = 0, dev = 0;
  bool has_post = false, has_dev = false;

  explicit Stages(std::string_view suffix) {
    // Each turn reads one segment: separators, a word, separators, a number. "+" begins the
    // local version.
    for (std::size_t at = 0; at < suffix.size() && suffix[at] != '+';) {
      const bool dash = suffix[at] == '-';
      at = skip_separators(suffix, at);
      std::string word;
      while (at < suffix.size() && is_letter(suffix[at]))
        word += static_cast<char>(std::tolower(static_cast<unsigned char>(suffix[at++])));
      if (!word.empty()) at = skip_separators(suffix, at);
      const std::size_t digits = at;
      std::uint64_t number = 0;
      while (at < suffix.size() && is_digit(suffix[at]))
        number = std::min<std::uint64_t>(number * 10 + static_cast<unsigned>(suffix[at++] - '0'), kMost);
      if (word.empty() && at == digits) return;  // nothing that PEP 440 knows
      take(word.empty() && dash ? "post" : word, number);
    }
  }

  // The sort key. "1.0.dev1" sorts before "1.0a1", hence phase 0; a version without any of these
  // words sorts after the pre-releases, hence 4. The dev release of anything sorts before that thing,
  // hence the negation.
  auto key() const {
    constexpr int kNone = 4;
    const int own_phase = phase != 0 ? phase : (!has_post && has_dev ? 0 : kNone);
    return std::tuple(own_phase, pre, has_post, post, !has_dev, dev);
  }

 private:
  // Caps every number, so that number * 10 + 9 cannot overflow whatever digits a file contains.
  static constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max() / 16;
  static std::size_t skip_separators(std::string_view text, std::size_t at) {
    while (at < text.size() && (text[at] == '.' || text[at] == '-' || text[at] == '_')) ++at;
    return at;
  }
  // A segment "-1" without a word is a post release (PEP 440, implicit post releases); the caller turns
  // it into "post". Words that PEP 440 does not know change nothing.
  void take(std::string_view word, std::uint64_t number) {
    constexpr std::array<std::pair<std::string_view, int>, 8> kPhases = {
        {{"a", 1}, {"alpha", 1}, {"b", 2}, {"beta", 2}, {"rc", 3}, {"c", 3}, {"pre", 3}, {"preview", 3}}};
    for (const auto& [name, number_of_phase] : kPhases)
      if (word == name) phase = number_of_phase, pre = number;
    if (word == "post" || word == "rev" || word == "r") has_post = true, post = number;
    if (word == "dev") has_dev = true, dev = number;
  }
};

}  // namespace

// Reads digits separated by single dots; everything from the first other character on becomes the suffix.
// A dot that no digit follows belongs to the suffix: "2.9.dev1" is release 2.9 with ".dev1".
std::optional<Version> Version::parse(std::string_view text) {
  Version version;
  std::size_t at = 0;
  while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]))) {
    unsigned number = 0;
    while (at < text.size() && std::isdigit(static_cast<unsigned char>(text[at]))) {
      if (number > 100'000'000) return std::nullopt;  // no release number is that long; do not wrap around
      number = number * 10 + static_cast<unsigned>(text[at++] - '0');
    }
    version.release.push_back(number);
    if (at + 1 >= text.size() || text[at] != '.' || !std::isdigit(static_cast<unsigned char>(text[at + 1])))
      break;
    ++at;
  }
  if (version.release.empty()) return std::nullopt;
  version.suffix = std::string(text.substr(at));
  return version;
}

std::string Version::major_minor() const { return std::to_string(part(0)) + "." + std::to_string(part(1)); }

bool Version::is_prerelease() const {
  return suffix.starts_with("a") || suffix.starts_with("b") || suffix.starts_with("rc") ||
         suffix.starts_with(".dev");
}

// Missing parts count as 0, so "2.11" equals "2.11.0" (PEP 440). Suffixes do not count.
std::strong_ordering operator<=>(const Version& a, const Version& b) {
  const std::size_t parts = std::max(a.release.size(), b.release.size());
  for (std::size_t i = 0; i < parts; ++i)
    if (auto order = a.part(i) <=> b.part(i); std::is_neq(order)) return order;
  return std::strong_ordering::equal;
}

bool operator==(const Version& a, const Version& b) { return std::is_eq(a <=> b); }

std::strong_ordering pep440_order(const Version& a, const Version& b) {
  if (const auto order = a <=> b; std::is_neq(order)) return order;
  return Stages(a.suffix).key() <=> Stages(b.suffix).key();
}

bool is_postrelease(const Version& version) { return Stages(version.suffix).has_post; }

namespace {

// "~=2.2.1" is ">=2.2.1, ==2.2.*": all parts but the last stay.
bool is_compatible(const Version& have, const Version& want) {
  for (std::size_t i = 0; i + 1 < want.release.size(); ++i)
    if (have.part(i) != want.part(i)) return false;
  return std::is_gteq(pep440_order(have, want));
}

bool meets_clause(const std::string& installed, const std::string& clause) {
  const auto digits = clause.find_first_not_of("=<>!~");
  if (digits == std::string::npos || digits == 0) return true;
  const std::string operation = clause.substr(0, digits), wanted = clause.substr(digits);
  if (wanted.ends_with(".*") && (operation == "==" || operation == "!=")) {
    const bool below = (installed + ".").starts_with(wanted.substr(0, wanted.size() - 1));
    return below == (operation == "==");
  }
  const auto have = Version::parse(installed), want = Version::parse(wanted);
  if (!have || !want) return true;
  const auto order = pep440_order(*have, *want);
  if (operation == "==") return std::is_eq(order);
  if (operation == "!=") return std::is_neq(order);
  if (operation == ">=") return std::is_gteq(order);
  if (operation == "<=") return std::is_lteq(order);
  if (operation == "<") return std::is_lt(order);
  if (operation == ">") return std::is_gt(order);
  return operation != "~=" || is_compatible(*have, *want);
}

}  // namespace

bool meets(const std::string& installed, const std::string& specifier) {
  const auto clauses = split_nonempty(specifier, ",");
  return std::ranges::all_of(clauses,
                             [&](const std::string& clause) { return meets_clause(installed, clause); });
}

}  // namespace scankit

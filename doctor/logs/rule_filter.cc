// SPDX-License-Identifier: Apache-2.0
#include "doctor/logs/rule_filter.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace scankit::logs {
namespace {

// Bytes of the shortest literal that counts. Shorter ones are on every line, and longer ones leave more patterns
// without any.
constexpr int kShortest = 3;

// For so many patterns and lines it pays to compile one pattern that says whether the line matches any of them.
constexpr std::size_t kFew = 3;
constexpr unsigned kMany = 500;
constexpr std::size_t kMostKnown = 4096;
constexpr std::int64_t kMemoryOfOne = 8 << 20;  // bytes

// How seldom a text is in a log, by a rough measure: long ones are rare, and those of other bytes than words have.
int rarity(const std::string& text) {
  int sum = 0;
  for (const char c : text)
    sum += (c >= 'a' && c <= 'z') || c == ' ' || c == ':' || c == '(' || c == ')' ? 1 : 3;
  return sum;
}

}  // namespace

RuleFilter::RuleFilter(const std::vector<std::string>& patterns, const re2::RE2::Options& options)
    : options_(options), patterns_(kShortest) {
  for (const std::string& pattern : patterns) {
    int index = 0;
    if (patterns_.Add(pattern, options, &index) != re2::RE2::NoError)
      throw std::logic_error(fmt::format("log_rules.yaml: RE2 refuses {}", pattern));
  }
  std::vector<std::string> literals;
  patterns_.Compile(&literals);
  literals_of_patterns_ = static_cast<int>(literals.size());
  patterns_.AllPotentials({}, &unfiltered_);
  std::ranges::sort(unfiltered_);
  const auto more = literals_of_unfiltered(options);
  always_ = more.empty() && !unfiltered_.empty();
  literals.insert(literals.end(), more.begin(), more.end());
  literals_ = std::make_unique<LiteralFinder>(literals);
}

// Rare texts of which every line has one that these patterns match: of ": " and "-l", which one pattern needs both,
// the second is enough. Empty if a line can match without any of two bytes.
std::vector<std::string> RuleFilter::literals_of_unfiltered(const re2::RE2::Options& options) const {
  re2::FilteredRE2 shorter(2);
  int ignored = 0;
  for (const int index : unfiltered_) (void)shorter.Add(pattern(index).pattern(), options, &ignored);
  std::vector<std::string> texts;
  if (!unfiltered_.empty()) shorter.Compile(&texts);
  std::vector<int> order(texts.size()), left_out, possible;
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, {}, [&](int i) { return rarity(texts[static_cast<std::size_t>(i)]); });
  std::vector<std::string> needed;
  for (const int index : order) {
    // Left out if a line that has it, and all others that are left out, still matches nothing.
    left_out.push_back(index);
    shorter.AllPotentials(left_out, &possible);
    if (possible.empty()) continue;
    left_out.pop_back();
    needed.push_back(texts[static_cast<std::size_t>(index)]);
  }
  return needed;
}

RuleFilter::Memo::Candidates RuleFilter::candidates_with(const std::vector<int>& places) const {
  std::vector<int> found;
  for (const int place : places)
    found.insert(found.end(), literals_->ends_at(place).begin(), literals_->ends_at(place).end());
  const auto of_patterns =
      std::partition(found.begin(), found.end(), [&](int i) { return i < literals_of_patterns_; });
  const bool unfiltered = always_ || of_patterns != found.end();
  found.erase(of_patterns, found.end());
  Memo::Candidates made;
  if (!found.empty()) {
    patterns_.AllPotentials(found, &made.patterns);  // and the unfiltered ones, which it knows nothing of
    std::erase_if(made.patterns, [&](int index) { return std::ranges::binary_search(unfiltered_, index); });
  }
  if (unfiltered) made.patterns.insert(made.patterns.end(), unfiltered_.begin(), unfiltered_.end());
  std::ranges::sort(made.patterns);
  return made;
}

std::unique_ptr<re2::RE2> RuleFilter::one_of(const std::vector<int>& patterns) const {
  std::string any;
  for (const int index : patterns) any += (any.empty() ? "(?:" : "|(?:") + pattern(index).pattern() + ")";
  // One pattern may not have two groups of a name, and none of them is asked for.
  re2::RE2::GlobalReplace(&any, "\\(\\?P<\\w+>", "(?:");
  re2::RE2::Options options = options_;
  options.set_max_mem(kMemoryOfOne);
  auto made = std::make_unique<re2::RE2>(any, options);
  return made->ok() ? std::move(made) : nullptr;
}

std::vector<int> RuleFilter::match(const std::string& line, Memo& memo) const {
  memo.places.clear();
  literals_->find(line, memo.marks, memo.places);
  std::vector<int> matching;
  if (memo.places.empty() && !always_) return matching;
  std::ranges::sort(memo.places);
  auto known = memo.by_places.find(memo.places);
  if (known == memo.by_places.end()) {
    if (memo.by_places.size() >= kMostKnown) {
      memo.by_places.clear();
      memo.compiled = 0;
    }
    known = memo.by_places.emplace(memo.places, candidates_with(memo.places)).first;
  }
  Memo::Candidates& candidates = known->second;
  if (++candidates.lines == kMany && candidates.patterns.size() >= kFew && memo.compiled < kMostCompiled) {
    candidates.any = one_of(candidates.patterns);
    ++memo.compiled;
  }
  if (candidates.any != nullptr && !re2::RE2::PartialMatch(line, *candidates.any)) return matching;
  for (const int index : candidates.patterns)
    if (re2::RE2::PartialMatch(line, pattern(index))) matching.push_back(index);
  return matching;
}

}  // namespace scankit::logs

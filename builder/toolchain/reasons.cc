// SPDX-License-Identifier: Apache-2.0
#include "builder/toolchain/reasons.h"

#include <algorithm>
#include <sstream>
#include <tuple>

#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/checks/snapshot_queries.h"

namespace scankit {
namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words.push_back(word);
  return words;
}

bool contains(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Flags are compared as sets of words; the same set in another order is a change as well.
void add_flags(const InputChange& change, std::vector<std::string>& out) {
  const auto before = words_of(change.before), after = words_of(change.after);
  const std::size_t start = out.size();
  for (const std::string& word : after)
    if (!contains(before, word)) out.push_back(say("flag {} was added", word));
  for (const std::string& word : before)
    if (!contains(after, word)) out.push_back(say("flag {} was removed", word));
  if (out.size() == start) out.push_back(say("the order of the flags changed"));
}

bool is_hash(const std::string& word) {
  return word.size() == 64 && word.find_first_not_of("0123456789abcdef") == std::string::npos;
}

// The value with its hashes cut to 12 digits.
std::string shortened(const std::string& value) {
  std::string text;
  for (const std::string& word : words_of(value))
    text += (text.empty() ? "" : " ") + (is_hash(word) ? word.substr(0, 12) : word);
  return text;
}

// "nvrtc 13.0" of "nvrtc 13.0 HASH".
std::string without_hash(const std::string& value) {
  std::string text;
  for (const std::string& word : words_of(value))
    if (!is_hash(word)) text += (text.empty() ? "" : " ") + word;
  return text;
}

// Hashes mean nothing to people: a changed one becomes "changed", or "has other bytes".
std::string in_words(const InputChange& change) {
  const bool part = change.label.starts_with(kSourcePart) && change.label.find('/') != std::string::npos;
  const std::string name = part ? change.label.substr(std::string(kSourcePart).size()) : change.label;
  if (change.is_new) return say("{} was added", name);
  if (change.is_gone) return say("{} was removed", name);
  if (is_hash(change.before) && is_hash(change.after)) return say("{} changed", name);
  if (without_hash(change.before) == without_hash(change.after))
    return say("the content of {} {} changed", name, without_hash(change.after));
  if (change.label == "compiler")
    return say("{} is {} and was {}", name, without_hash(change.after), without_hash(change.before));
  return say("{} is {} and was {}", name, shortened(change.after), shortened(change.before));
}

// "forward_f32", "forward_f32 and 10 more"
std::string units_of(const std::vector<const Miss*>& misses) {
  if (misses.size() == 1) return misses[0]->unit;
  return say_n(misses.size() - 1, "{} and {} more", "{} and {} more", misses[0]->unit, misses.size() - 1);
}

std::string in_words(const std::vector<const Miss*>& group) {
  const Miss& first = *group[0];
  const std::string units = units_of(group);
  switch (first.kind) {
    case Miss::Kind::NeverBuilt:
      return say("compiled: {} for {}: never built with this cache", units, first.target);
    case Miss::Kind::Changed:
      return say("compiled again: {} for {}: since the last build {}", units, first.target,
                 join(first.changes));
    case Miss::Kind::Gone:
      return say("compiled again: {} for {}: nothing changed, but it is no longer in the cache", units,
                 first.target);
    case Miss::Kind::Damaged:
      break;
  }
  return say("compiled again: {} for {}: the file in the cache was damaged and removed: {}", units,
             first.target, first.entry);
}

}  // namespace

std::vector<std::string> changes_in_words(const Inputs& before, const Inputs& after) {
  std::vector<std::string> words;
  const auto changes = changed_inputs(before, after);
  const bool part = std::any_of(changes.begin(), changes.end(), [](const InputChange& change) {
    return change.label.starts_with(kSourcePart) && change.label.find('/') != std::string::npos;
  });
  for (const InputChange& change : changes) {
    if (change.label == "source" && part) continue;  // its file is named
    if (change.label == "flags")
      add_flags(change, words);
    else
      words.push_back(in_words(change));
  }
  return words;
}

std::vector<std::string> misses_in_words(const std::vector<Miss>& misses) {
  // Misses are few, so that a search for each is cheap; the groups keep the order of their first miss.
  const auto reason = [](const Miss& miss) {
    return std::tie(miss.target, miss.kind, miss.changes, miss.entry);
  };
  std::vector<std::vector<const Miss*>> groups;
  for (const Miss& miss : misses) {
    const auto same = std::find_if(groups.begin(), groups.end(),
                                   [&](const auto& group) { return reason(*group[0]) == reason(miss); });
    if (same == groups.end())
      groups.push_back({&miss});
    else
      same->push_back(&miss);
  }
  std::vector<std::string> lines;
  for (const auto& group : groups) lines.push_back(in_words(group));
  return lines;
}

}  // namespace scankit

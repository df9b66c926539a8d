// SPDX-License-Identifier: Apache-2.0
#include "doctor/logs/decide.h"

#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/knowledge/log_rules.h"

namespace scankit {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

int weight(const LogHit& hit) {
  if (hit.cause.empty()) return 0;
  return hit.sure == "certain" || hit.sure == "likely" ? 2 : 1;
}

// The last traceback decides; in a chain of them the first exception is the reason of the others. Without a
// traceback (compilers, loaders, the shell) the first error of the last attempt is the one that the others
// follow from. A guess gives way to what is known, and what is no fault of the installation to what is one.
std::size_t root_of(const std::vector<Seen>& errors) {
  if (errors.empty()) return kNone;
  const Seen& last = errors.back();
  std::size_t best = kNone;
  const auto consider = [&](std::size_t i) {
    if (best == kNone || weight(errors[i].hit) > weight(errors[best].hit)) best = i;
  };
  for (std::size_t i = 0; i < errors.size(); ++i)
    if (errors[i].attempt == last.attempt && errors[i].chain == last.chain) consider(i);
  // A dead process or an unspecific last line may follow from a traceback just before it.
  if (weight(errors[best].hit) < 2)
    for (std::size_t i = errors.size(); i-- > 0;)
      if (errors[i].attempt == last.attempt && weight(errors[i].hit) == 2) return i;
  return best;
}

bool has(const std::vector<std::string>& list, const std::string& word) {
  return std::ranges::find(list, word) != list.end();
}

void join(LogHit& root, const LogState& state) {
  for (const LogJoin& join : log_joins()) {
    if (!has(join.causes, root.cause)) continue;
    const auto clue = std::ranges::find_if(
        state.clues, [&](const LogHit& candidate) { return has(join.clues, candidate.rule); });
    const bool other_error =
        std::ranges::any_of(state.errors, [&](const Seen& seen) { return has(join.clues, seen.hit.rule); });
    if (clue == state.clues.end() && !other_error) continue;
    const std::string error_meaning = root.meaning;
    root.alternatives.insert(root.alternatives.begin(), root.cause);
    std::erase(root.alternatives, join.gives);
    root.cause = join.gives;
    root.sure = join.sure;
    root.meaning = error_meaning + "; " +
                   (clue == state.clues.end() ? join.meaning : say("{} (line {})", join.meaning, clue->line));
    root.settles = join.settles;
    return;
  }
}

}  // namespace

std::vector<LogHit> decide(LogState state) {
  std::vector<LogHit> hits;
  std::size_t root = root_of(state.errors);
  if (root != kNone) {
    LogHit first = state.errors[root].hit;
    first.role = "root";
    join(first, state);
    hits.push_back(std::move(first));
  } else if (state.failed) {
    // Something failed and no line says what: a warning before it is the best guess there is.
    const auto clue = std::ranges::find_if(state.clues, [](const LogHit& hit) { return !hit.cause.empty(); });
    if (clue != state.clues.end()) {
      hits.push_back(*clue);
      hits.back().role = "root";
      hits.back().sure = "possible";
    }
  }
  std::set<std::string> told;
  if (!hits.empty()) told.insert(hits.front().cause + hits.front().text);
  for (std::size_t i = 0; i < state.errors.size(); ++i)
    if (i != root && told.insert(state.errors[i].hit.cause + state.errors[i].hit.text).second)
      hits.push_back(state.errors[i].hit);
  for (LogHit& clue : state.clues)
    if (told.insert(clue.cause + clue.text).second) hits.push_back(std::move(clue));
  std::stable_sort(hits.begin() + (hits.empty() || hits.front().role != "root" ? 0 : 1), hits.end(),
                   [](const LogHit& a, const LogHit& b) { return a.line < b.line; });
  return hits;
}

}  // namespace scankit

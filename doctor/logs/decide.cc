// SPDX-License-Identifier: Apache-2.0
#include "doctor/logs/decide.h"

#include <algorithm>
#include <optional>

#include "doctor/base/message.h"
#include "doctor/knowledge/faults.h"

namespace scankit::logs {
namespace {

constexpr std::uint64_t kTail = 30;  // lines that a message may go on behind the last line of its traceback

bool holds(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

void Tracebacks::line(std::uint64_t number, const std::string& text) {
  if (holds(text, "During handling of the above exception") ||
      holds(text, "The above exception was the direct cause")) {
    chained_ = true;
    return;
  }
  // Until the traceback that follows at once; any other line in between ends it.
  if (holds(text, "Exception ignored in")) {
    next_ignored_ = true;
    return;
  }
  const auto head = text.find("Traceback (most recent call last)");
  // A traceback after one of the two connecting lines continues the chain.
  if (head != std::string::npos) {
    if (!chained_) ++chain_;
    chained_ = false;
    column_ = head;
    inside_ = true;
    boxed_ = holds(text, "─ Traceback");
    ignored_ = next_ignored_;
    next_ignored_ = false;
    return;
  }
  next_ignored_ = false;
  if (!inside_) return;
  if (boxed_) {
    inside_ = !text.starts_with("╰");
    ended_ = number + 1;
    return;
  }
  // Deeper lines are frames and source lines. The first line at the column ends the traceback:
  // the exception.
  if (text.size() <= column_ || text[column_] == ' ') return;
  inside_ = false;
  ended_ = number;
}

std::uint64_t Tracebacks::chain(std::uint64_t number) const {
  return chain_ > 0 && (inside_ || number <= ended_ || number - ended_ <= kTail) ? chain_ : 0;
}

namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

// How much an error says: 2 for a cause that is at least likely, 1 for a guess, 0 for an error that is
// not a fault of the installation.
int weight(const LogHit& hit) {
  if (hit.cause.empty()) return 0;
  return hit.sure == "certain" || hit.sure == "likely" ? 2 : 1;
}

std::string fact_of(const LogHit& hit, std::string_view name) {
  const auto fact = std::ranges::find(hit.facts, name, &LogFact::name);
  return fact == hit.facts.end() ? "" : fact->value;
}

// An earlier error of the loader, of a file of the package that the error at `name` misses a name of: kNone where
// nothing tells of one. A package whose compiled part did not load goes on with half of its names.
std::size_t load_failure_before(const std::vector<Seen>& errors, std::size_t name) {
  const LogHit& hit = errors[name].hit;
  std::string package = fact_of(hit, "package");
  package = package.substr(0, package.find('.'));
  if (!hit.rule.starts_with("name_missing") || package.empty()) return kNone;
  for (std::size_t i = name; i-- > 0;)
    if (errors[i].attempt == errors[name].attempt && weight(errors[i].hit) == 2 &&
        errors[i].hit.file.find("/" + package + "/") != std::string::npos)
      return i;
  return kNone;
}

// The index of the error that ended the program, or kNone. The last traceback decides, and within a chain
// of tracebacks the first exception, which caused the others. Without a traceback (compilers, loaders,
// the shell) the first error of the last attempt counts, because the others follow from it. A likely
// cause wins over a guess, a fault of the installation over any other error, and what made an import fail over the
// errors of the program that went on without it.
std::size_t root_of(const std::vector<Seen>& errors) {
  if (errors.empty()) return kNone;
  const Seen& last = errors.back();
  std::size_t best = kNone;
  const auto consider = [&](std::size_t i) {
    if (best == kNone || weight(errors[i].hit) > weight(errors[best].hit)) best = i;
  };
  for (std::size_t i = 0; i < errors.size(); ++i)
    if (errors[i].attempt == last.attempt && errors[i].chain == last.chain) consider(i);
  // Full memory and the like end a program whatever it warned of before.
  const LogHit& ended = errors[best].hit;
  if (last.chain > 0 && ended.cause.empty() && ended.sure == "certain") return best;
  // The end of a process or an unspecific last line may be the consequence of a traceback just before it.
  if (weight(ended) < 2)
    for (std::size_t i = errors.size(); i-- > 0;)
      if (errors[i].attempt == last.attempt && weight(errors[i].hit) == 2) return i;
  if (const std::size_t load = load_failure_before(errors, best); load != kNone) return load;
  if (errors[best].symptom) {
    for (std::size_t i = best; i-- > 0;)
      if (errors[i].attempt == last.attempt && !errors[i].symptom && weight(errors[i].hit) == 2) return i;
    // The program went on, and ended for another reason.
    if (last.hit.cause.empty() && last.hit.sure == "certain") return errors.size() - 1;
  }
  return best;
}

bool has(const std::vector<std::string>& list, const std::string& word) {
  return std::ranges::find(list, word) != list.end();
}

// Replaces the cause of the root if the log also shows one of the clues of a LogJoin, which together mean
// something else. The old cause becomes an alternative. The first row that fits is applied, and no other.
// Returns whether one was.
bool join(LogHit& root, const LogState& state) {
  const auto shows = [&](const std::string& rule) { return state.clue_rules.contains(rule); };
  for (const knowledge::LogJoin& join : knowledge::log_joins()) {
    if (!has(join.causes, root.cause) || std::ranges::any_of(join.unless, shows)) continue;
    const auto clue = std::ranges::find_if(
        state.clues, [&](const LogHit& candidate) { return has(join.clues, candidate.rule); });
    // A clue may itself have been recognised as an error.
    const bool other_error =
        std::ranges::any_of(state.errors, [&](const Seen& seen) { return has(join.clues, seen.hit.rule); });
    if (clue == state.clues.end() && !other_error) continue;
    const Message error_meaning = root.meaning;
    root.alternatives.insert(root.alternatives.begin(), root.cause);
    std::erase(root.alternatives, join.gives);
    root.cause = join.gives == knowledge::kNoCause ? "" : join.gives;
    root.sure = join.sure;
    root.meaning =
        clauses_of({error_meaning, clue == state.clues.end()
                                       ? table_text(join.meaning)
                                       : message("{} (line {})", table_text(join.meaning), clue->line)});
    root.settles = join.settles.empty() ? Message() : table_text(join.settles);
    return true;
  }
  return false;
}

// What stands in for an error where something failed and no line says what: a warning before it. One that
// only helps to explain others does not, unless a second clue makes it more.
std::optional<LogHit> warning_as_root(const LogState& state) {
  for (std::size_t i = state.earlier_clues; i < state.clues.size(); ++i) {
    const LogHit& clue = state.clues[i];
    if (clue.cause.empty()) continue;
    LogHit first = clue;
    if (!join(first, state) && clue.sure == "possible") continue;
    first.role = "root";
    first.sure = "possible";
    return first;
  }
  return std::nullopt;
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
    if (auto first = warning_as_root(state)) hits.push_back(*std::move(first));
  } else if (state.last) {
    // Nothing failed, and a healthy program would have printed more: it was stopped while it waited.
    hits.push_back(*std::move(state.last));
    hits.front().role = "root";
  }
  // The same error is often printed several times, as by pip and by the build below it.
  std::set<std::string> told;
  if (!hits.empty()) told.insert(hits.front().cause + hits.front().text);
  for (std::size_t i = 0; i < state.errors.size(); ++i)
    if (i != root && told.insert(state.errors[i].hit.cause + state.errors[i].hit.text).second)
      hits.push_back(state.errors[i].hit);
  // A warning answers a log in which nothing failed. Elsewhere it only distracts.
  if (state.failed) std::erase_if(state.clues, [](const LogHit& clue) { return clue.role == "warning"; });
  for (LogHit& clue : state.clues)
    if (told.insert(clue.cause + clue.text).second) hits.push_back(std::move(clue));
  // The root stays in front; everything else is in the order of the log.
  std::stable_sort(hits.begin() + (hits.empty() || hits.front().role != "root" ? 0 : 1), hits.end(),
                   [](const LogHit& a, const LogHit& b) { return a.line < b.line; });
  return hits;
}

}  // namespace scankit::logs

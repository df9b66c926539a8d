// SPDX-License-Identifier: Apache-2.0
#include "kernels/selective_scan/tune/contest.h"

#include <algorithm>
#include <cstring>
#include <utility>

// A knockout contest: in each stage the choices are timed in turns, and those that are far behind are
// not timed again.
namespace scankit::selective_scan {
namespace {

constexpr struct {
  int rounds;
  double kept;  // times the best median, to go on behind this stage
} kStages[] = {{3, 1.15}, {6, 1.04}, {12, 1}};

bool same(const Choice& a, const Choice& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

// `turn` is reversed after each round, so that no choice always follows the same one. Times of
// earlier stages count.
void time_rounds(Bench& bench, Outcome& outcome, std::vector<std::size_t> turn, int rounds) {
  for (const std::size_t i : turn) bench.milliseconds(outcome.entries[i].choice);  // warm
  for (int round = 0; round < rounds; ++round) {
    for (const std::size_t i : turn)
      outcome.entries[i].times.push_back(bench.milliseconds(outcome.entries[i].choice));
    std::reverse(turn.begin(), turn.end());
  }
  for (const std::size_t i : turn) outcome.entries[i].median = median_of(outcome.entries[i].times);
}

// Chooses among those that were timed to the end. The first `shipped` variants are those that
// the modules contain.
void pick(Outcome& outcome, const std::vector<std::size_t>& last, int shipped) {
  const auto fastest = [&](int variants) {
    int best = -1;
    for (const std::size_t i : last) {
      const Entry& entry = outcome.entries[i];
      if (entry.choice.variant >= variants) continue;
      if (best < 0 || entry.median < outcome.entries[static_cast<std::size_t>(best)].median)
        best = static_cast<int>(i);
    }
    return best;
  };
  outcome.best = fastest(1 << 30);
  outcome.shipped = fastest(shipped);
  const Entry& predicted = outcome.entries[static_cast<std::size_t>(outcome.predicted)];
  if (!predicted.wrong.empty() || outcome.shipped < 0) return;
  if (outcome.entries[static_cast<std::size_t>(outcome.shipped)].median > kNoise * predicted.median)
    outcome.shipped = outcome.predicted;
}

}  // namespace

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

Outcome hold_contest(Bench& bench, const Cell& cell, const std::vector<Choice>& choices,
                     const Choice& predicted) {
  Outcome outcome;
  outcome.entries.push_back({predicted, {}, {}, 0});
  for (const Choice& choice : choices)
    if (!same(choice, predicted)) outcome.entries.push_back({choice, {}, {}, 0});
  std::vector<std::size_t> turn;
  for (std::size_t i = 0; i < outcome.entries.size(); ++i) {
    Entry& entry = outcome.entries[i];
    entry.wrong = bench.judge(entry.choice);
    if (entry.wrong.empty()) turn.push_back(i);
  }
  if (turn.empty()) return outcome;
  // The best shipped choice is wanted, too, so that a fast candidate must not knock all of those out: each
  // kind is compared with its own best.
  const int shipped = shipped_variants(cell.backward);
  for (const auto& stage : kStages) {
    time_rounds(bench, outcome, turn, stage.rounds);
    double best = 1e30, best_shipped = 1e30;
    for (const std::size_t i : turn) {
      const Entry& entry = outcome.entries[i];
      best = std::min(best, entry.median);
      if (entry.choice.variant < shipped) best_shipped = std::min(best_shipped, entry.median);
    }
    if (&stage == std::end(kStages) - 1) break;
    std::vector<std::size_t> next;
    for (const std::size_t i : turn) {
      const Entry& entry = outcome.entries[i];
      const double limit = stage.kept * (entry.choice.variant < shipped ? best_shipped : best);
      if (entry.median <= limit || i == 0) next.push_back(i);
    }
    turn = std::move(next);
  }
  pick(outcome, turn, shipped);
  return outcome;
}

}  // namespace scankit::selective_scan

// SPDX-License-Identifier: Apache-2.0
#include "kernels/selective_scan/tune/cells.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "kernels/selective_scan/cuda/choice.h"

// The problems that are measured, in tiers: a run with little time does the important ones first. The
// names of variants come from variants.def.
namespace scankit::selective_scan {
namespace {

#define FORWARD_VARIANT(name, ...) #name,
#define BACKWARD_VARIANT(...)
constexpr std::string_view kForwardNames[] = {
#include "kernels/selective_scan/cuda/variants.def"
};
#define FORWARD_VARIANT(...)
#define BACKWARD_VARIANT(name, ...) #name,
constexpr std::string_view kBackwardNames[] = {
#include "kernels/selective_scan/cuda/variants.def"
};

// Warps of a block, and segments into which the length is cut.
constexpr int kBlocks[] = {1, 2, 4, 8, 16};
constexpr int kSegments[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32};
constexpr int kPieces = 2;
constexpr Index kWaves = 2;  // from which a further cut brings no more warps side by side

struct Shape {
  DType dtype;
  int batch, dim, length, states;
};

// The shapes of tier 0 and of tier 1.
constexpr Shape kGoals[] = {
    {DType::BF16, 8, 2048, 2048, 16},  {DType::BF16, 8, 5120, 2048, 16}, {DType::BF16, 1, 5120, 2048, 16},
    {DType::BF16, 1, 2048, 16384, 16}, {DType::BF16, 64, 384, 196, 16},  {DType::F32, 8, 2048, 2048, 16},
};
constexpr Shape kFigures[] = {
    {DType::BF16, 8, 2048, 197, 16},
    {DType::BF16, 8, 2048, 512, 16},
    {DType::BF16, 8, 2048, 4097, 16},
    {DType::BF16, 64, 384, 197, 16},
    {DType::BF16, 8, 2048, 2047, 16},
    {DType::BF16, 1, 5120, 2047, 16},
    {DType::BF16, 8, 1536, 1001, 16},
    {DType::BF16, 1, 2048, 65536, 16},
    {DType::BF16, 1, 1536, 65536, 16},
    {DType::BF16, 8, 2048, 2048, 1},
    {DType::BF16, 8, 2048, 2048, 8},
    {DType::BF16, 8, 2048, 2048, 64},
    {DType::BF16, 2, 2048, 2048, 128},
    {DType::BF16, 2, 2048, 2048, 256},
    {DType::F16, 8, 2048, 2048, 16},
    // VMamba's stages, in one group; it also scans in fp32.
    {DType::BF16, 32, 768, 3136, 1},
    {DType::BF16, 32, 1536, 784, 1},
    {DType::BF16, 32, 3072, 196, 1},
    {DType::BF16, 32, 6144, 49, 1},
    {DType::F32, 32, 768, 3136, 1},
    {DType::F32, 32, 1536, 784, 1},
    // fp32's rows of whole quads, and others.
    {DType::F32, 64, 384, 196, 16},
    {DType::F32, 8, 1536, 1004, 16},
    {DType::F32, 1, 5120, 2044, 16},
    {DType::F32, 8, 2048, 2044, 16},
    {DType::F32, 64, 384, 197, 16},
    {DType::F32, 8, 2048, 197, 16},
    {DType::F32, 8, 1536, 1001, 16},
    {DType::F32, 1, 768, 2047, 16},
    {DType::F32, 1, 2048, 4097, 16},
    {DType::F32, 1, 5120, 2047, 16},
    {DType::F32, 4, 2048, 1022, 16},
    {DType::F32, 8, 2048, 2047, 16},
    {DType::F32, 8, 2048, 4097, 16},
};
// Channels of the grids as batch and dim: steps of about 1.4 to 2, from a quarter of a wave of an H200 on.
constexpr std::array<int, 2> kChannels[] = {{1, 768},  {1, 1536}, {1, 2048}, {2, 1536}, {1, 4096}, {1, 5120},
                                            {4, 2048}, {2, 5120}, {8, 2048}, {8, 3072}, {8, 4096}, {8, 5120}};
constexpr int kLengths[] = {256, 1024, 2048, 4096, 16384};
constexpr Index kMostElements = Index{1} << 27;  // of a grid's cell: what is larger fills every GPU

// A shape that is in the list already, with the same product of batch and dim, is skipped: the dispatch
// table only knows the product.
void add(std::vector<Cell>& cells, const Shape& s, int tier) {
  for (const Cell& c : cells)
    if (c.dtype == s.dtype && c.batch * c.dim == s.batch * s.dim && c.length == s.length &&
        c.states == s.states)
      return;
  for (const bool backward : {false, true})
    cells.push_back({backward, s.dtype, s.batch, s.dim, s.length, s.states, tier});
}

// Every `step`-th entry of kChannels with every length.
void add_grid(std::vector<Cell>& cells, DType dtype, int states, int tier, int step) {
  for (std::size_t i = 0; i < std::size(kChannels); i += static_cast<std::size_t>(step))
    for (const int length : kLengths)
      if (Index{kChannels[i][0]} * kChannels[i][1] * length * (states > 16 ? states / 16 : 1) <=
          kMostElements)
        add(cells, {dtype, kChannels[i][0], kChannels[i][1], length, states}, tier);
}

}  // namespace

std::vector<Cell> default_cells() {
  std::vector<Cell> cells;
  for (const Shape& shape : kGoals) add(cells, shape, 0);
  for (const Shape& shape : kFigures) add(cells, shape, 1);
  add_grid(cells, DType::BF16, 16, 2, 1);
  add_grid(cells, DType::F32, 16, 3, 2);
  for (const int states : {1, 4, 8, 64, 32, 128, 256}) add_grid(cells, DType::BF16, states, 4, 3);
  return cells;
}

Common common_of(const Cell& cell) {
  Common c = {};
  c.batch = cell.batch, c.dim = cell.dim, c.length = cell.length, c.states = cell.states, c.groups = 1;
  c.dtype = cell.dtype, c.softplus = true;
  return c;
}

std::string_view name_of(DType dtype) {
  return dtype == DType::F32 ? "f32" : dtype == DType::F16 ? "f16" : "bf16";
}
std::string shape_of(const Cell& c) {
  return std::string(name_of(c.dtype)) + " B" + std::to_string(c.batch) + " D" + std::to_string(c.dim) +
         " L" + std::to_string(c.length) + " N" + std::to_string(c.states);
}
std::string name_of(const Cell& cell) { return (cell.backward ? "backward " : "forward ") + shape_of(cell); }

std::string_view variant_name(bool backward, int variant) {
  return (backward ? kBackwardNames : kForwardNames)[variant];
}
int shipped_variants(bool backward) { return backward ? kBackwardShipped : kForwardShipped; }
const Variant& variant_of(bool backward, int variant) {
  return (backward ? kBackwardVariants : kForwardVariants)[variant];
}
std::string name_of(bool backward, const Choice& c) {
  return std::string(variant_name(backward, c.variant)) + "/" + std::to_string(c.warps) + " s" +
         std::to_string(c.segments) + " p" + std::to_string(c.pieces);
}

std::vector<Choice> choices_of(const Cell& cell, const device::DeviceFacts& facts) {
  const Common common = common_of(cell);
  std::vector<Choice> choices;
  const int variants = cell.backward ? kBackwardVariantCount : kForwardVariantCount;
  for (int v = 0; v < variants; ++v) {
    const Variant& variant = variant_of(cell.backward, v);
    for (const int warps : kBlocks) {
      if (!can_run(variant, warps, common, facts) || (warps == 1 && !variant.sliced)) continue;
      if (variant.odd && cell.length % 4 == 0) continue;  // rows without pads are at 8-byte places
      const Index together = Index{variant.resident_warps[cell.dtype == DType::F32]} * facts.multiprocessors;
      const Index all_warps = block_count(variant, warps, common) * warps;
      std::vector<int> counts;  // of segments, as cut
      for (const int segments : kSegments) {
        if (segments > 1 && all_warps * (segments - 1) >= kWaves * together) break;
        const Choice choice = {v, warps, segments, kPieces};
        const int count = cut(variant, choice, common).count;
        if (std::find(counts.begin(), counts.end(), count) != counts.end()) continue;
        counts.push_back(count);
        choices.push_back(choice);
      }
    }
  }
  return choices;
}

Choice predicted_choice(const Cell& cell, const device::DeviceFacts& facts) {
  Choice choice = {};
  if (cell.backward)
    choose_backward_by({nullptr, 0}, common_of(cell), facts, &choice);
  else
    choose_forward_by({nullptr, 0}, common_of(cell), facts, &choice);
  return choice;
}

// A knockout contest: in each stage the choices are timed in turns, and those that are far behind are
// not timed again.
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

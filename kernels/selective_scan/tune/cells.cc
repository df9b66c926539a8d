// SPDX-License-Identifier: Apache-2.0
#include "kernels/selective_scan/tune/cells.h"

#include <algorithm>
#include <array>

#include "kernels/selective_scan/cuda/dispatch.h"

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
  for (const int states : {1, 4, 8, 64}) add_grid(cells, DType::BF16, states, 4, 3);
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

}  // namespace scankit::selective_scan

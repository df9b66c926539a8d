// SPDX-License-Identifier: Apache-2.0
#include "kernels/selective_scan/cuda/choice.h"

#include <string.h>

#include "kernels/common/threads.h"
#include "kernels/selective_scan/cuda/layout.h"

// A choice is made from the measured table (dispatch.cc) where it has a row for the problem or near it,
// and otherwise by a prediction: cycles of the busiest multiprocessor, for every variant, block and
// count of segments that fits. All numbers are whole, so every host compiler chooses alike, and with the
// choice the bits of the results.
namespace scankit::selective_scan {
namespace {

// A row's numbers. Memory32: of fp32's kernel, whose options may differ. The bounds of __launch_bounds__
// say how many warps are resident.
template <class L, class Memory, class Memory32>
constexpr Variant make_variant(int team, bool sliced, int threads, int blocks, int blocks32, int busy,
                               int alone, bool constant = false, bool odd = false) {
  return {L::kLanes,
          L::kPer,
          L::kChannels,
          team,
          sliced,
          Memory::kFewestWarps,
          threads / 32,
          {threads / 32 * blocks, threads / 32 * blocks32},
          L::kWarpChannels / team,
          sliced ? 1 : Memory::kSpanTiles,
          {Memory::kBlock, Memory32::kBlock},
          {Memory::kWarp, Memory32::kWarp},
          Memory::kWarpSlice,
          busy,
          alone,
          constant,
          L::kLanes == 1 && L::kPer == 16 && !odd,
          odd};
}

constexpr Index kMostBlocks = 0x7fffffff;
// Of the ends kernels, as of the variants (kEndsResident: blocks a multiprocessor); and what
// another launch costs, in cycles.
constexpr int kEndsBusy = 52, kEndsAlone = 110, kEndsResident = 5, kEndsLaunch = 16000;
// What the reduction costs a call besides its work: a workspace and a launch, 4.6 us on an H200's host.
constexpr int kReduceLaunch = 9000;
constexpr int kSegmentCounts[] = {1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32};
constexpr int kPieces = 2;  // of a segment: more warps for the ends kernel, which has little to do

Index divide_up(Index a, Index b) { return (a + b - 1) / b; }

constexpr Index kSchedulers = 4;  // of a multiprocessor; its warps are dealt out to them

// Predicted cycles per step of the multiprocessor with the most blocks, `resident` at a time: full waves,
// then what is left. A scheduler is either busy all the time or waits for a warp that runs `alone`; a warp
// beside a waiting one costs half of its busy time. Fitted to an H200, right to 10 % for 1 to 5 warps.
Index predict(Index blocks, int warps, Index resident, int busy, int alone,
              const device::DeviceFacts& facts) {
  const auto cycles = [&](Index together) {
    const Index here = divide_up(together * warps, kSchedulers);
    const Index all_busy = here * busy, waiting = alone + (here - 1) * busy / 2;
    return here == 0 ? 0 : all_busy > waiting ? all_busy : waiting;
  };
  const Index here = divide_up(blocks, facts.multiprocessors);
  return here / resident * cycles(resident) + cycles(here % resident);
}

int slice_count(const Variant& variant, int states) {
  const int slice = variant.lanes * variant.per_lane * variant.team;
  return (states + slice - 1) / slice;
}

// Cycles of the whole call: the longest segment's, and, where the length is cut, those of the ends of the
// pieces of all segments but one, which are found first.
Index predict(const Variant& variant, const Choice& choice, Index blocks, Index resident,
              const Common& common, const device::DeviceFacts& facts) {
  const Segments segments = cut(variant, choice, common);
  const Index all =
      predict(blocks * segments.count, choice.warps, resident, variant.busy, variant.alone, facts);
  if (segments.count == 1) return all * common.length * slice_count(variant, common.states);
  const Index ends = Index{ends_tiling(common).tiles_per_group} * common.groups * common.batch *
                     (segments.pieces - segments.tiles / segments.tiles_per_piece);
  return all * (segments.tiles * kTile) + kEndsLaunch +
         predict(ends, kEndsWarps, kEndsResident, kEndsBusy, kEndsAlone, facts) *
             (segments.tiles_per_piece * kTile);
}

// Blocks that a multiprocessor holds at a time, by registers and shared memory; at least one.
Index resident_blocks(const Variant& variant, int warps, const Common& common,
                      const device::DeviceFacts& facts) {
  const int by_registers = variant.resident_warps[common.dtype == DType::F32] / warps;
  constexpr int kReserved = 1024;  // by the system, of each block's shared memory
  const int by_memory = facts.shared_per_multiprocessor /
                        (shared_bytes(variant, warps, common.states, common.dtype) + kReserved);
  const int blocks = by_registers < by_memory ? by_registers : by_memory;
  return blocks < 1 ? 1 : blocks;
}

// Whether a variant is made for the count of states and for constant or variable B and C.
bool fits(const Variant& variant, const Common& common) {
  if (variant.constant != has_constant(common)) return false;
  if (variant.sliced) return common.states > 16;
  const int slice = variant.lanes * variant.per_lane;
  if (common.packed.cu_seqlens) return common.states <= slice;
  // A smaller slice that holds all states does the same work with fewer idle lanes.
  return common.states <= slice && (variant.constant || slice == 4 || common.states > slice / 2);
}

}  // namespace

bool can_run(const Variant& variant, int warps, const Common& common, const device::DeviceFacts& facts) {
  return fits(variant, common) && (!variant.halves || common.length % 4 == 0) &&
         variant.resident_warps[common.dtype == DType::F32] > 0 && warps <= variant.most_warps &&
         warps >= variant.fewest_warps &&
         shared_bytes(variant, warps, common.states, common.dtype) <= facts.shared_per_block;
}

namespace {

// Cycles in which the backward's slabs of dB and dC, one for each block of a group, are written and read;
// 0 where there is one of each, which nothing reduces. Larger blocks leave fewer.
Index slab_cycles(const Variant& variant, int warps, const Common& c, const device::DeviceFacts& facts) {
  const Index blocks = divide_up(c.dim / c.groups, Index{warps} * variant.warp_channels);
  if (blocks == 1 && c.batch == 1 && !variant.sliced && !variant.constant) return 0;
  const int variable = (c.constant_B.data ? 0 : 1) + (c.constant_C.data ? 0 : 1);
  const Index numbers = blocks * variable * c.batch * c.groups * c.states * c.length;
  constexpr Index kNumbersPerCycle = 4;  // of a multiprocessor, from memory
  return 1 + 2 * numbers / (kNumbersPerCycle * facts.multiprocessors);
}

// What a direction may choose from: variants, and warps of a block in the order in which they are tried,
// the last one repeated to fill the array. Of equal predictions the first wins. slabs: it leaves some.
struct Direction {
  const Variant* variants;
  int count;
  int warps[5];
  bool slabs;
  bool places = true;  // of the rows: 8-byte ones, of 16-bit types
  // What a variant that is not made for rows at other places takes there, in hundredths of its time.
  int odd_percent = 100;
};
// Forward: small blocks start and end more evenly; slices need much shared memory a warp.
// Backward: large blocks leave fewer slabs of dB and dC to sum.
Direction forward_direction(const Common& c, bool halves) {
  if (has_constant(c)) return {&kConstantForward, 1, {2, 4, 1, 1, 1}, false};
  if (c.packed.cu_seqlens) return {&kPackedForward, 1, {2, 4, 1, 1, 1}, false};
  const bool places = halves && c.length % 4 == 0;
  if (!places && has_odd_kernels(c))
    return {kForwardVariants, kForwardShipped, {4, 2, 1, 1, 1}, false, false, 170};
  return {kForwardVariants, kForwardShipped, {2, 4, 1, 1, 1}, false, places};
}
Direction backward_direction(const Common& c, bool halves) {
  if (has_constant(c)) return {&kConstantBackward, 1, {8, 4, 2, 1, 1}, true};
  if (c.packed.cu_seqlens) return {&kPackedBackward, 1, {8, 4, 2, 1, 1}, true};
  const bool places = halves && c.length % 4 == 0;
  return {kBackwardVariants,
          kBackwardShipped,
          {16, 8, 4, 2, 1},
          true,
          places,
          !places && has_odd_kernels(c) ? 150 : 100};
}
bool takes(const Direction& d, int variant, int warps, const Common& common,
           const device::DeviceFacts& facts) {
  const Variant& v = d.variants[variant];
  return can_run(v, warps, common, facts) && (d.places ? !v.odd : !v.halves);
}

// A choice's whole prediction.
Index predict(const Direction& d, const Choice& choice, Index blocks, const Common& common,
              const device::DeviceFacts& facts) {
  const Variant& variant = d.variants[choice.variant];
  const Index more = d.slabs ? slab_cycles(variant, choice.warps, common, facts) : 0;
  const Index scan =
      predict(variant, choice, blocks, resident_blocks(variant, choice.warps, common, facts), common, facts);
  return (variant.odd ? scan : scan * d.odd_percent / 100) + more +
         (d.slabs && (more > 0 || choice.segments > 1) ? kReduceLaunch : 0);
}

// Least predicted time; negative where no block fits the device's shared memory.
Index choose_by_waves(const Direction& d, const Common& common, const device::DeviceFacts& facts,
                      Choice* choice) {
  Index best = -1;
  for (int v = 0; v < d.count; ++v) {
    for (const int warps : d.warps) {
      if (!takes(d, v, warps, common, facts)) continue;
      const Index blocks = block_count(d.variants[v], warps, common);
      const Index resident = resident_blocks(d.variants[v], warps, common, facts);
      int before = 0;
      for (const int segments : kSegmentCounts) {
        // Where the count before fills the GPU or is all that the length has, more are not looked at.
        if (before > 0 && (blocks * before >= resident * facts.multiprocessors ||
                           before * kPieces >= chunk_count(common.length)))
          break;
        before = segments;
        const Choice next = {v, warps, segments, kPieces};
        const Index time = predict(d, next, blocks, common, facts);
        if (best >= 0 && time >= best) continue;
        best = time;
        *choice = next;
      }
    }
  }
  return best;
}

// By a row for this very problem, else by a near row if its choice is predicted within a quarter of
// the best, else by prediction.
bool choose(const Direction& d, const DispatchTable& table, const Common& common,
            const device::DeviceFacts& facts, Choice* choice) {
  // Nothing is measured of a constant B or C, or of packed sequences.
  const Found found = has_constant(common) || common.packed.cu_seqlens
                          ? Found{}
                          : find_measurement(table, common, facts, d.variants, d.places);
  const bool for_these = d.odd_percent == 100 || (found.row && d.variants[found.row->choice.variant].odd);
  const bool there = found.row && for_these && found.row->choice.variant < d.count &&
                     takes(d, found.row->choice.variant, found.row->choice.warps, common, facts);
  if (there && found.exact) {
    *choice = found.row->choice;
    return true;
  }
  const Index best = choose_by_waves(d, common, facts, choice);
  if (best < 0) return false;
  if (!there) return true;
  const Choice& measured = found.row->choice;
  const Index blocks = block_count(d.variants[measured.variant], measured.warps, common);
  if (4 * predict(d, measured, blocks, common, facts) <= 5 * best) *choice = measured;
  return true;
}

// The last choices, one a hash, direct mapped. A model asks for the same few again and again, and looking
// through all of them takes up to a microsecond. Callers hold in_use for find() and keep() together; who finds
// it held by another thread chooses without.
class Choices {
 public:
  int in_use = 0;  // TryLock's

  // Null: not known; keep() then puts it there.
  const Choice* find(const Common& c, bool places, const device::DeviceFacts& facts) {
    // All that a choice depends on. Pointers and strides are not among it, but for `places`.
    const int kind = (c.packed.cu_seqlens ? 8 : 0) + (places ? 4 : 0) + (c.constant_B.data ? 2 : 0) +
                     (c.constant_C.data ? 1 : 0);
    const Key key = {{c.batch, c.dim, c.groups, c.states, c.length, static_cast<int>(c.dtype), kind}, facts};
    unsigned mix = 0;
    for (const int number : key.problem) mix = (mix ^ static_cast<unsigned>(number)) * 0x9e3779b1u;
    place_ = &entries_[mix >> 28];
    if (place_->known && memcmp(&place_->key, &key, sizeof key) == 0) return &place_->choice;
    place_->key = key;
    place_->known = false;
    return nullptr;
  }
  void keep(const Choice& choice) {
    place_->choice = choice;
    place_->known = true;
  }

 private:
  struct Key {
    int problem[7];
    device::DeviceFacts facts;
  };
  static_assert(sizeof(Key) == 11 * sizeof(int), "compared as bytes");
  struct Entry {
    Key key;
    Choice choice;
    bool known;
  };
  Entry entries_[16] = {};
  Entry* place_ = nullptr;
};

bool choose_once(Choices* choices, const Direction& d, const DispatchTable& table, const Common& common,
                 const device::DeviceFacts& facts, Choice* choice) {
  const TryLock lock(&choices->in_use);
  const Choice* known = lock ? choices->find(common, d.places, facts) : nullptr;
  if (known) {
    *choice = *known;
    return true;
  }
  if (!choose(d, table, common, facts, choice)) return false;
  if (lock) choices->keep(*choice);
  return true;
}

}  // namespace

#define FORWARD_VARIANT(name, lanes, per, channels, sliced, threads, blocks, blocks32, busy, alone, options, \
                        part)                                                                                \
  make_variant<Layout<lanes, per, channels>, ForwardMemory<Layout<lanes, per, channels>, sliced, options>,   \
               ForwardMemory<Layout<lanes, per, channels>, sliced, OptionsOf<options, 4>::Type>>(            \
      options::kTeam, sliced, threads, blocks, blocks32, busy, alone, false, options::kOdd),
const Variant kForwardVariants[] = {
#include "kernels/selective_scan/cuda/variants.def"
};
const int kForwardVariantCount = sizeof kForwardVariants / sizeof *kForwardVariants;
#define FORWARD_VARIANT(...) -1
const int kForwardShipped = kForwardVariantCount
#ifdef SCANKIT_TUNE
#include "kernels/selective_scan/cuda/tune_forward.def"
#endif
    ;
#undef FORWARD_VARIANT

#define BACKWARD_VARIANT(name, lanes, per, channels, sliced, threads, blocks, blocks32, busy, alone,        \
                         options, part)                                                                     \
  make_variant<Layout<lanes, per, channels>, BackwardMemory<Layout<lanes, per, channels>, sliced, options>, \
               BackwardMemory<Layout<lanes, per, channels>, sliced, OptionsOf<options, 4>::Type>>(          \
      options::kTeam, sliced, threads, blocks, blocks32, busy, alone, false, options::kOdd),
const Variant kBackwardVariants[] = {
#include "kernels/selective_scan/cuda/variants.def"
};
const int kBackwardVariantCount = sizeof kBackwardVariants / sizeof *kBackwardVariants;
#define BACKWARD_VARIANT(...) -1
const int kBackwardShipped = kBackwardVariantCount
#ifdef SCANKIT_TUNE
#include "kernels/selective_scan/cuda/tune_backward.def"
#endif
    ;
#undef BACKWARD_VARIANT

#define CONSTANT_FORWARD(lanes, per, channels, threads, blocks, blocks32, busy, alone, options)      \
  const Variant kConstantForward =                                                                   \
      make_variant<Layout<lanes, per, channels>,                                                     \
                   ForwardMemory<Layout<lanes, per, channels>, false, options>,                      \
                   ForwardMemory<Layout<lanes, per, channels>, false, OptionsOf<options, 4>::Type>>( \
          1, false, threads, blocks, blocks32, busy, alone, true);
#define CONSTANT_BACKWARD(lanes, per, channels, threads, blocks, blocks32, busy, alone, options)      \
  const Variant kConstantBackward =                                                                   \
      make_variant<Layout<lanes, per, channels>,                                                      \
                   BackwardMemory<Layout<lanes, per, channels>, false, options>,                      \
                   BackwardMemory<Layout<lanes, per, channels>, false, OptionsOf<options, 4>::Type>>( \
          1, false, threads, blocks, blocks32, busy, alone, true);
#define PACKED_FORWARD(lanes, per, channels, threads, blocks, blocks32, busy, alone, options)        \
  const Variant kPackedForward =                                                                     \
      make_variant<Layout<lanes, per, channels>,                                                     \
                   ForwardMemory<Layout<lanes, per, channels>, false, options>,                      \
                   ForwardMemory<Layout<lanes, per, channels>, false, OptionsOf<options, 4>::Type>>( \
          1, false, threads, blocks, blocks32, busy, alone);
#define PACKED_BACKWARD(lanes, per, channels, threads, blocks, blocks32, busy, alone, options)        \
  const Variant kPackedBackward =                                                                     \
      make_variant<Layout<lanes, per, channels>,                                                      \
                   BackwardMemory<Layout<lanes, per, channels>, false, options>,                      \
                   BackwardMemory<Layout<lanes, per, channels>, false, OptionsOf<options, 4>::Type>>( \
          1, false, threads, blocks, blocks32, busy, alone);
#include "kernels/selective_scan/cuda/variants.def"

Tiling ends_tiling(const Common& common) {
  const int channels = common.dim / common.groups, of_block = kEndsWarps * (32 / kEndsLanes);
  return {channels, (channels + of_block - 1) / of_block};
}

// Pieces of equal length, but the last, in whole spans a segment. Few tiles give fewer segments
// than wanted.
Segments cut(const Variant& variant, const Choice& choice, const Common& common) {
  const Index chunks = chunk_count(common.length);
  Segments s = {};
  s.count = 1;
  if (choice.segments <= 1 || common.states > kEndsLanes * kEndsPer || common.packed.cu_seqlens) return s;
  Index per_piece = divide_up(chunks, Index{choice.segments} * choice.pieces);
  while (per_piece * choice.pieces % variant.span_tiles != 0) ++per_piece;
  s.tiles_per_piece = static_cast<int>(per_piece);
  s.tiles = s.tiles_per_piece * choice.pieces;
  s.count = static_cast<int>(divide_up(chunks, s.tiles));
  s.pieces = static_cast<int>(divide_up(chunks, per_piece));
  if (s.count < 1) s.count = 1;
  return s;
}

int shared_bytes(const Variant& variant, int warps, int states, DType dtype) {
  const int slices = slice_count(variant, states);
  const bool wide = dtype == DType::F32;
  return 4 * (variant.block_floats[wide] +
              warps * (variant.warp_floats[wide] + slices * variant.warp_slice_floats));
}

Index block_count(const Variant& variant, int warps, const Common& common) {
  const Index tiles = divide_up(common.dim / common.groups, Index{warps} * variant.warp_channels);
  const Index of_batch = tiles * common.groups;
  if (common.batch > 0 && of_batch > kMostBlocks / common.batch) return -1;
  return of_batch * common.batch;
}

bool choose_forward(const Common& common, const device::DeviceFacts& facts, Choice* choice, bool halves) {
  static Choices known;
  return choose_once(&known, forward_direction(common, halves), kForwardMeasured, common, facts, choice);
}
bool choose_backward(const Common& common, const device::DeviceFacts& facts, Choice* choice, bool halves) {
  static Choices known;
  return choose_once(&known, backward_direction(common, halves), kBackwardMeasured, common, facts, choice);
}
bool choose_forward_by(const DispatchTable& table, const Common& common, const device::DeviceFacts& facts,
                       Choice* choice) {
  return choose(forward_direction(common, true), table, common, facts, choice);
}
bool choose_backward_by(const DispatchTable& table, const Common& common, const device::DeviceFacts& facts,
                        Choice* choice) {
  return choose(backward_direction(common, true), table, common, facts, choice);
}

}  // namespace scankit::selective_scan

// SPDX-License-Identifier: Apache-2.0
#include "kernels/selective_scan/cuda/choice.h"

namespace scankit::selective_scan {
namespace {

// Names of variants.def as places in its lists, which the table's rows have.
#define FORWARD_VARIANT(name, ...) kForward_##name,
#define BACKWARD_VARIANT(name, ...)
enum ForwardName {
#include "kernels/selective_scan/cuda/variants.def"
};
#define FORWARD_VARIANT(name, ...)
#define BACKWARD_VARIANT(name, ...) kBackward_##name,
enum BackwardName {
#include "kernels/selective_scan/cuda/variants.def"
};

// The first of each is no row: an array has at least one.
#define MEASURED(capability, multiprocessors, dtype, states, length, channels, variant, warps, segments, \
                 pieces)                                                                                 \
  {capability, multiprocessors, DType::dtype, states, length, channels, {variant, warps, segments, pieces}},
const Measurement kForwardRows[] = {
    {},
#define MEASURED_FORWARD(capability, multiprocessors, dtype, states, length, channels, variant, ...) \
  MEASURED(capability, multiprocessors, dtype, states, length, channels, kForward_##variant, __VA_ARGS__)
#define MEASURED_BACKWARD(...)
#include "kernels/selective_scan/cuda/dispatch_table.def"
#undef MEASURED_FORWARD
#undef MEASURED_BACKWARD
};
const Measurement kBackwardRows[] = {
    {},
#define MEASURED_FORWARD(...)
#define MEASURED_BACKWARD(capability, multiprocessors, dtype, states, length, channels, variant, ...) \
  MEASURED(capability, multiprocessors, dtype, states, length, channels, kBackward_##variant, __VA_ARGS__)
#include "kernels/selective_scan/cuda/dispatch_table.def"
#undef MEASURED_FORWARD
#undef MEASURED_BACKWARD
};

// 256 times the logarithm to base 2, in whole numbers: between powers of two on the chord, 0.09 off
// at most.
int log2_256(Index n) {
  if (n < 1) return 0;
  const int whole = 63 - __builtin_clzll(static_cast<unsigned long long>(n));
  return 256 * whole + static_cast<int>(((n << 8) >> whole) & 255);
}

// In such units: factors of 2.4, 1.5 and 2. Another type, or rows at other places, count as a distance.
constexpr int kMostLength = 323, kMostChannels = 150, kMostStates = 256;
constexpr Index kOtherType = 64 * 64, kOtherPlaces = 128 * 128;

// The squared distance of a row from a problem; negative where the row says nothing of it.
Index distance(const Measurement& row, const Common& c) {
  const int length = log2_256(row.length) - log2_256(c.length);
  const int channels = log2_256(row.channels) - log2_256(Index{c.batch} * c.dim);
  int states = log2_256(row.states) - log2_256(c.states);
  if (row.states <= 16 || c.states <= 16) {
    const auto slice = [](int n) { return n <= 1 ? 1 : n <= 4 ? 4 : n <= 8 ? 8 : n <= 16 ? 16 : 17; };
    if (slice(row.states) != slice(c.states)) return -1;
    states = 0;
  }
  if (row.dtype != c.dtype && (row.dtype == DType::F32 || c.dtype == DType::F32)) return -1;
  const auto within = [](int n, int most) { return n <= most && -n <= most; };
  if (!within(length, kMostLength) || !within(channels, kMostChannels) || !within(states, kMostStates))
    return -1;
  // At odd places other kernels are fast.
  if (has_odd_kernels(c) && (row.length % 4 == 0) != (c.length % 4 == 0)) return -1;
  // Rows of 8 k steps start at 16-byte places, others are read and written otherwise; of fp32's 9 to 16 states
  // rows of whole quads have another backward.
  const auto alike = [&](int steps) { return (row.length % steps == 0) == (c.length % steps == 0); };
  const bool quads = c.dtype != DType::F32 || alike(4);
  const bool same =
      row.length == c.length && row.channels == Index{c.batch} * c.dim && row.states == c.states;
  // Waves hang on the channels first. The logarithms of neighbours, as 4096 and 4097, are one number.
  return 2 * (Index{4} * channels * channels + Index{length} * length + Index{states} * states +
              (row.dtype == c.dtype ? 0 : kOtherType) + (alike(8) ? 0 : kOtherPlaces) +
              (quads ? 0 : 2 * kOtherPlaces)) +
         (same ? 0 : 1);
}

}  // namespace

const DispatchTable kForwardMeasured = {kForwardRows + 1, sizeof kForwardRows / sizeof *kForwardRows - 1};
const DispatchTable kBackwardMeasured = {kBackwardRows + 1, sizeof kBackwardRows / sizeof *kBackwardRows - 1};

Found find_measurement(const DispatchTable& table, const Common& c, const device::DeviceFacts& facts,
                       const Variant* variants, bool places) {
  Found found = {};
  Index nearest = -1;
  for (int i = 0; i < table.count; ++i) {
    const Measurement& row = table.rows[i];
    if (row.capability != facts.capability || row.multiprocessors != facts.multiprocessors) continue;
    const Index away = distance(row, c);
    if (away < 0 || (nearest >= 0 && away >= nearest)) continue;
    if (variants && !places && variants[row.choice.variant].halves) continue;
    nearest = away;
    found.row = &row;
  }
  const Measurement* row = found.row;
  found.exact = row && row->dtype == c.dtype && row->states == c.states && row->length == c.length &&
                row->channels == Index{c.batch} * c.dim && c.groups == 1;
  return found;
}

}  // namespace scankit::selective_scan

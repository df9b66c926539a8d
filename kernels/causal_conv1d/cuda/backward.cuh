// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/causal_conv1d/cuda/forward.cuh"

// The two backwards that take any call, in the layouts of forward.cuh, and the last stage of all sums:
//   dy = dout silu'(y), y computed again;  dx_t = sum over j of weight[j] dy_(t + j)
//   dweight[back] = sum over batches and steps of dy_t x_(t - back);  dbias = sum of dy_t
// dx needs dy of kHistory steps behind a segment, which is computed there as well. A segment's sums of
// dweight and dbias go to a slab of their own; reduce_slabs adds the slabs in a fixed order. No atomics:
// two runs give the same bits.
namespace scankit::causal_conv1d {

// A thread's sums for dweight, by how many steps back, and dbias.
struct WeightSums {
  float weight[kMaxWidth] = {}, bias = 0.0f;

  template <class T, class Inputs>
  SCANKIT_DEVICE void add(const Channel<T>& row, Index step, float dy, const Inputs& x) {
    bias += dy;
#pragma unroll
    for (int back = 0; back < kMaxWidth; ++back)
      if (back < row.c.width && row.together(step - back, step))
        weight[back] = fmaf(dy, x(back), weight[back]);
  }

  // To the segment's slab, [width + 1][dim]: the taps in weight's order, then the bias.
  SCANKIT_DEVICE void put_slab(const BackwardArguments& p, Index batch, Index segment, Index channel) const {
    const Common& c = p.conv.common;
    float* slab =
        static_cast<float*>(p.workspace) + (batch * p.segments + segment) * (c.width + 1) * c.dim + channel;
#pragma unroll
    for (int back = 0; back < kMaxWidth; ++back)
      if (back < c.width) slab[(c.width - 1 - back) * static_cast<Index>(c.dim)] = weight[back];
    slab[c.width * static_cast<Index>(c.dim)] = bias;
  }
};

// Lanes over channels. dx follows kHistory steps behind, where dy is complete; the walk goes as many
// steps past the segment's end. Those steps' dy counts for dx here, but for dweight in the segment that
// has them.
// Lanes of a warp read neighbouring channels of one step, which are neighbours in memory here.
template <class T>
SCANKIT_DEVICE void backward_by_channel(const BackwardArguments& p) {
  const Common& c = p.conv.common;
  const Index tiles = (c.dim + kThreads - 1) / kThreads;
  const Index at = blockIdx.x, segment = at / tiles % p.segments, batch = at / tiles / p.segments;
  const Index channel = at % tiles * kThreads + threadIdx.x;
  if (channel >= c.dim) return;
  const Channel<T> row(c, batch, channel);
  const Index start = segment * kChannelSegment;
  const Index end = start + kChannelSegment < c.length ? start + kChannelSegment : c.length;
  WeightSums sums;
  float x[kHistory + kChunk], dy[kHistory + kChunk];
#pragma unroll
  for (int i = 0; i < kHistory; ++i) x[i] = row.input(start - kHistory + i), dy[i] = 0.0f;
  for (Index first = start; first < end + kHistory; first += kChunk) {
#pragma unroll
    for (int i = 0; i < kChunk; ++i) {
      const bool there = first + i < c.length && first + i < end + kHistory;
      x[kHistory + i] = there ? get<T>(c.x, batch, channel, first + i) : 0.0f;
      dy[kHistory + i] = there ? get<T>(p.conv.dout, batch, channel, first + i) : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < kChunk; ++i) {
      const Index step = first + i;
      const auto inputs = [&](int back) { return x[kHistory + i - back]; };
      if (step < c.length && step < end + kHistory)
        dy[kHistory + i] = row.differentiate(step, dy[kHistory + i], inputs);
      if (step < end) sums.add(row, step, dy[kHistory + i], inputs);
    }
#pragma unroll
    for (int i = 0; i < kChunk; ++i) {
      const Index step = first + i - kHistory;
      // Gradients of steps before the segment are the segment's before; those before step 0 are dinitial.
      if (step < end && (step >= start || start == 0))
        row.put_gradient(p.conv, step, row.input_gradient(p.conv, step, [&](int j) { return dy[i + j]; }));
    }
#pragma unroll
    for (int i = 0; i < kHistory; ++i) x[i] = x[kChunk + i], dy[i] = dy[kChunk + i];
  }
  sums.put_slab(p, batch, segment, channel);
}

// Over 32 lanes, in all of them, always in the same order.
SCANKIT_DEVICE float warp_sum(float x) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) x += __shfl_xor_sync(0xffffffffu, x, distance);
  return x;
}

// Lanes over steps: dy of a warp's segment and of kHistory steps behind it go to shared memory,
// and dx is made from there. Only the warp's own row is used: __syncwarp is enough, and warps
// without a segment may leave.
template <class T>
SCANKIT_DEVICE void backward_by_step(const BackwardArguments& p) {
  __shared__ float shared[kWarps][kStepSegment + kHistory];
  const Common& c = p.conv.common;
  const Row at = warp_row(c, p.segments);
  if (!at.inside) return;
  const int lane = threadIdx.x % 32;
  float* const dy = shared[threadIdx.x / 32];
  const Channel<T> row(c, at.batch, at.channel);
  const Index start = at.segment * kStepSegment;
  const Index end = start + kStepSegment < c.length ? start + kStepSegment : c.length;
  WeightSums sums;
  for (int i = lane; i < kStepSegment + kHistory; i += 32) {
    const Index step = start + i;
    const auto inputs = [&](int back) { return row.input(step - back); };
    dy[i] = step < c.length ? row.differentiate(step, get<T>(p.conv.dout, at.batch, at.channel, step), inputs)
                            : 0.0f;
    if (step < end) sums.add(row, step, dy[i], inputs);
  }
  __syncwarp();
  for (Index step = start + lane; step < end; step += 32)
    row.put_gradient(p.conv, step,
                     row.input_gradient(p.conv, step, [&](int j) { return dy[step - start + j]; }));
  if (start == 0 && lane < c.width - 1) {
    const Index step = lane - (c.width - 1);
    row.put_gradient(p.conv, step, row.input_gradient(p.conv, step, [&](int j) { return dy[step + j]; }));
  }
  sums.bias = warp_sum(sums.bias);
#pragma unroll
  for (int back = 0; back < kMaxWidth; ++back) sums.weight[back] = warp_sum(sums.weight[back]);
  if (lane == 0) sums.put_slab(p, at.batch, at.segment, at.channel);
}

// A channel's total, to dbias where row is the width, else to a tap of dweight. `add`: to what is there.
// Who calls it has the only total, so nothing has to be atomic.
SCANKIT_DEVICE void put_sum(const Backward& conv, int row, Index channel, float sum) {
  float* to = conv.dbias != nullptr ? conv.dbias + channel : nullptr;
  if (row < conv.common.width)
    to = conv.dweight + channel * conv.dweight_dim_stride + row * conv.dweight_tap_stride;
  if (to != nullptr) *to = conv.add ? *to + sum : sum;
}

// A block has kReduceChannels channels of one row of the slabs. Part i of its threads adds the
// slabs i, i + kReduceParts, ..., then part 0 adds the parts, all in a fixed order; a part's
// lanes read neighbouring channels.
// grid.x: tiles of channels fastest, then the rows of the slabs (width taps, then the bias). Launched
// behind any backward that wrote slabs.
SCANKIT_DEVICE void reduce_slabs(const BackwardArguments& p) {
  __shared__ float parts[kReduceParts][kReduceChannels];
  const Common& c = p.conv.common;
  const Index tiles = (c.dim + kReduceChannels - 1) / kReduceChannels;
  const int row = static_cast<int>(blockIdx.x / tiles), lane = threadIdx.x % kReduceChannels,
            part = threadIdx.x / kReduceChannels;
  const Index channel = blockIdx.x % tiles * kReduceChannels + lane;
  const float* from = static_cast<const float*>(p.workspace) + row * static_cast<Index>(c.dim) + channel;
  float sum = 0.0f;
  if (channel < c.dim) {
#pragma unroll 4
    for (Index slab = part; slab < p.slabs; slab += kReduceParts) sum += from[slab * (c.width + 1) * c.dim];
  }
  parts[part][lane] = sum;
  __syncthreads();
  if (part != 0 || channel >= c.dim) return;
#pragma unroll
  for (int i = 1; i < kReduceParts; ++i) sum += parts[i][lane];
  put_sum(p.conv, row, channel, sum);
}

}  // namespace scankit::causal_conv1d

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/causal_conv1d/cuda/backward.cuh"
#include "kernels/causal_conv1d/cuda/forward_pairs.cuh"

// The backward of forward_pairs.cuh. dx follows kHistory steps behind, where dy is complete; the walk
// goes as many steps past the segment's end. The sums of a block's segments go to a slab, in the order of
// the warps.
namespace scankit::causal_conv1d {

using PairSums = float[kMaxWidth + 1][2];  // the last are of bias

// A lane's part: two channels of a segment.
template <class T, class Kind>
struct BackwardPairs {
  static constexpr int kAhead = 4;
  const BackwardPairsArguments& p;
  const Common& c;
  const PairPlace& place;
  const PairTaps taps;

  // Of a step that may be before the first; dy[0] is that step's, dy[j] that of the j-th behind it.
  SCANKIT_DEVICE float input_gradient(int step, int which, const float (*dy)[2]) const {
    float sum = fmaf(taps.weight[1][which], dy[1][which], taps.weight[0][which] * dy[0][which]);
    if (Kind::reaches(c, 2)) sum = fmaf(taps.weight[2][which], dy[2][which], sum);
    if (Kind::reaches(c, 3)) sum = fmaf(taps.weight[3][which], dy[3][which], sum);
    const int final = step - (c.length - (c.width - 1));
    if (Kind::states(p.segments.states) && p.conv.dfinal.data != nullptr && final >= 0)
      sum += get<T>(p.conv.dfinal, place.batch, place.channel + which, final);
    return sum;
  }

  // To dx or dinitial; nothing for steps that belong to another segment. `dx` walks along with the steps
  // of its own.
  SCANKIT_DEVICE void put_gradient(int step, const float (*dy)[2], PairWalk<T, char>& dx) const {
    if (step >= place.end || (step < place.start && place.start > 0)) return;
    float gradient[2];
#pragma unroll
    for (int which = 0; which < 2; ++which) gradient[which] = input_gradient(step, which, dy);
    if (step >= 0) {
      dx.put(gradient);
    } else if (Kind::states(p.segments.states) && p.conv.dinitial.data != nullptr && step > -c.width) {
#pragma unroll
      for (int which = 0; which < 2; ++which)
        put<T>(p.conv.dinitial, place.batch, place.channel + which, c.width - 1 + step, gradient[which]);
    }
  }

  // A step's part of the sums; x begins kHistory steps before it.
  SCANKIT_DEVICE void add(const float (*x)[2], const float (&dy)[2], PairSums& sums) const {
#pragma unroll
    for (int which = 0; which < 2; ++which) {
      sums[kMaxWidth][which] += dy[which];
#pragma unroll
      for (int back = 0; back < kMaxWidth; ++back)
        if (back < 2 || Kind::reaches(c, back))
          sums[back][which] = fmaf(dy[which], x[kHistory - back][which], sums[back][which]);
    }
  }

  // Rings of kAhead loads of x and dout, as in forward_segment.
  SCANKIT_DEVICE void run(PairSums& sums) const {
    // `past`: where the walk ends, so that dx catches up; `end`: the end of the steps that it finds there.
    const int past = place.end + kHistory, end = past < c.length ? past : c.length;
    PairWalk<T, const char> from(c.x, place), gradients(p.conv.dout, place);
    PairWalk<T, char> dx(p.conv.dx, place);
    typename T::Pair asked_x[kAhead], asked_dout[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      asked_x[i] = from.get(place.start + i < end);
      asked_dout[i] = gradients.get(place.start + i < end);
    }
    float x[kHistory + kAhead][2], dy[kHistory + kAhead][2];
    pair_history<T, Kind>(c, p.segments.states, place, x);
#pragma unroll
    for (int i = 0; i < kHistory; ++i) dy[i][0] = dy[i][1] = 0.0f;
    for (int first = place.start; first < past; first += kAhead) {
#pragma unroll
      for (int i = 0; i < kAhead; ++i) {
        float(&now)[2] = dy[kHistory + i];
        T::widen_pair(asked_x[i], x[kHistory + i][0], x[kHistory + i][1]);
        T::widen_pair(asked_dout[i], now[0], now[1]);
        asked_x[i] = from.get(first + kAhead + i < end);
        asked_dout[i] = gradients.get(first + kAhead + i < end);
#pragma unroll
        for (int which = 0; which < 2; ++which) {
          if (Kind::silu(c))
            now[which] = through_silu(now[which], taps.template convolve<Kind>(c, which, x + i));
          if (first + i >= end) now[which] = 0.0f;  // and not NaN
        }
        // dy behind the segment is for dx alone: another segment sums it up.
        if (first + i < place.end) add(x + i, now, sums);
        put_gradient(first + i - kHistory, dy + i, dx);
      }
#pragma unroll
      for (int i = 0; i < kHistory; ++i) {
        x[i][0] = x[kAhead + i][0], x[i][1] = x[kAhead + i][1];
        dy[i][0] = dy[kAhead + i][0], dy[i][1] = dy[kAhead + i][1];
      }
    }
  }
};

// Adds up the block's warps, and writes its slab (blockIdx.y), [width + 1][dim]. Warps without a segment
// have zeros.
SCANKIT_DEVICE void put_pair_sums(const BackwardPairsArguments& p, const PairSums& sums) {
  __shared__ float shared[kWarps][kMaxWidth + 1][kPairChannels];
  const Common& c = p.conv.common;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
#pragma unroll
  for (int row = 0; row <= kMaxWidth; ++row)
    shared[warp][row][2 * lane] = sums[row][0], shared[warp][row][2 * lane + 1] = sums[row][1];
  __syncthreads();
  const Index channel = Index{blockIdx.x} * kPairChannels + threadIdx.x % kPairChannels;
  if (channel >= c.dim) return;
  for (int row = threadIdx.x / kPairChannels; row <= c.width; row += kThreads / kPairChannels) {
    // Rows of the slab are in weight's order, the sums by how many steps back.
    const int from = row < c.width ? c.width - 1 - row : kMaxWidth;
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kWarps; ++i) sum += shared[i][from][threadIdx.x % kPairChannels];
    static_cast<float*>(p.workspace)[(Index{blockIdx.y} * (c.width + 1) + row) * c.dim + channel] = sum;
  }
}

template <class T, class Kind>
SCANKIT_DEVICE void backward_segment(const BackwardPairsArguments& p) {
  const Common& c = p.conv.common;
  const PairPlace place(c, p.segments);
  PairSums sums = {};
  if (place.inside) BackwardPairs<T, Kind>{p, c, place, PairTaps(c, place.channel)}.run(sums);
  put_pair_sums(p, sums);
}

template <class T>
SCANKIT_DEVICE void backward_pairs(const BackwardPairsArguments& p) {
  if (is_usual(p.conv.common, p.segments.states))
    backward_segment<T, CallKind<true>>(p);
  else
    backward_segment<T, CallKind<false>>(p);
}

}  // namespace scankit::causal_conv1d

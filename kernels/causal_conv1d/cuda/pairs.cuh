// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/causal_conv1d/cuda/backward.cuh"
#include "kernels/causal_conv1d/cuda/forward.cuh"

// For channel-last signals, without sequence numbers: a lane walks the steps of two neighbouring
// channels, so that a warp reads 64 channels of a step at once (128 bytes of 16-bit elements), and asks
// for them several steps before it uses them. Arrays [...][2] are of the two channels. No shared
// memory, no barrier in the forward.
namespace scankit::causal_conv1d {

// Weights, by how many steps back they reach, and biases of two channels. All loads are before the first
// use: one wait for memory instead of ten.
struct PairTaps {
  float weight[kMaxWidth][2], bias[2];

  SCANKIT_DEVICE PairTaps(const Common& c, Index channel) {
    if (c.weight_dtype == DType::F32)
      take<Float>(c, channel);
    else if (c.weight_dtype == DType::F16)
      take<Half>(c, channel);
    else
      take<BFloat>(c, channel);
  }

  // y of channel `which`, whose inputs end at x[kHistory].
  template <class Kind>
  SCANKIT_DEVICE float convolve(const Common& c, int which, const float (*x)[2]) const {
    float y = fmaf(weight[1][which], x[kHistory - 1][which],
                   fmaf(weight[0][which], x[kHistory][which], bias[which]));
    if (Kind::reaches(c, 2)) y = fmaf(weight[2][which], x[kHistory - 2][which], y);
    if (Kind::reaches(c, 3)) y = fmaf(weight[3][which], x[kHistory - 3][which], y);
    return y;
  }

 private:
  template <class W>
  SCANKIT_DEVICE void take(const Common& c, Index channel) {
    typename W::Bits bits[kMaxWidth + 1][2] = {};
    const auto *from = static_cast<const typename W::Bits*>(c.weight) + channel * c.weight_dim_stride,
               *biases = static_cast<const typename W::Bits*>(c.bias);
#pragma unroll
    for (int which = 0; which < 2; ++which) {
#pragma unroll
      for (int back = 0; back < kMaxWidth; ++back)
        if (back < c.width)
          bits[back][which] = from[which * c.weight_dim_stride + (c.width - 1 - back) * c.weight_tap_stride];
      if (biases != nullptr) bits[kMaxWidth][which] = biases[channel + which];
    }
#pragma unroll
    for (int which = 0; which < 2; ++which) {
#pragma unroll
      for (int back = 0; back < kMaxWidth; ++back) weight[back][which] = W::widen(bits[back][which]);
      bias[which] = W::widen(bits[kMaxWidth][which]);
    }
  }
};

// A warp's segment, steps [start, end) of a batch, and its lane's first channel. Not `inside`
// where the batches or the channels end before: such a lane does nothing, and in the backward
// still takes part in the barrier.
struct PairPlace {
  int batch, start, end;
  Index channel;
  bool inside;

  SCANKIT_DEVICE PairPlace(const Common& c, const Segments& segments) {
    const unsigned unit = blockIdx.y * kWarps + threadIdx.x / 32;
    batch = static_cast<int>(unit / static_cast<unsigned>(segments.count));
    start = static_cast<int>(unit % static_cast<unsigned>(segments.count)) * segments.steps;
    end = start + segments.steps < c.length ? start + segments.steps : c.length;
    channel = Index{blockIdx.x} * kPairChannels + threadIdx.x % 32 * 2;
    inside = batch < c.batch && channel < c.dim;
  }
};

// A pointer that walks along the steps of a signal, from the segment's first one, in bytes.
template <class T, class Bytes>
struct PairWalk {
  Bytes* at;
  const Index step;

  template <class S>
  SCANKIT_DEVICE PairWalk(const S& signal, const PairPlace& place)
      : at(static_cast<Bytes*>(signal.data) +
           (place.batch * signal.batch_stride + place.channel + place.start * signal.step_stride) * T::kSize),
        step(signal.step_stride * T::kSize) {}

  // Zeros where there is nothing. The pointer moves on in any case, so it may pass the end, unused.
  SCANKIT_DEVICE typename T::Pair get(bool there) {
    typename T::Pair pair = {};
    if (there) pair = *reinterpret_cast<const typename T::Pair*>(at);
    at += step;
    return pair;
  }
  // Rounds a pair and writes it as one access; only called for steps that exist.
  SCANKIT_DEVICE void put(const float (&v)[2]) {
    *reinterpret_cast<typename T::Pair*>(at) = T::narrow_pair(v[0], v[1]);
    at += step;
  }
};

// x of the kHistory steps before the segment: of the row, or of the initial states, or 0.
template <class T, class Kind>
SCANKIT_DEVICE void pair_history(const Common& c, bool states, const PairPlace& place, float (*x)[2]) {
  typename T::Pair pairs[kHistory] = {};
  PairWalk<T, const char> from(c.x, place);
  from.at -= kHistory * from.step;
#pragma unroll
  for (int i = 0; i < kHistory; ++i) pairs[i] = from.get(place.start > 0);
#pragma unroll
  for (int i = 0; i < kHistory; ++i) T::widen_pair(pairs[i], x[i][0], x[i][1]);
  if (!Kind::states(states) || place.start > 0) return;
#pragma unroll
  for (int i = 0; i < kHistory; ++i)
#pragma unroll
    for (int which = 0; which < 2; ++which)
      x[i][which] = input_of<T>(c, place.batch, place.channel + which, i - kHistory);
}

// A ring of kAhead loads: a step is asked for again, kAhead further, as soon as its registers are free.
template <class T, class Kind>
SCANKIT_DEVICE void forward_segment(const ForwardPairsArguments& p, const PairPlace& place) {
  constexpr int kAhead = 8;
  const Common& c = p.conv.common;
  PairWalk<T, const char> from(c.x, place);
  PairWalk<T, char> to(p.conv.out, place);
  typename T::Pair asked[kAhead];
#pragma unroll
  for (int i = 0; i < kAhead; ++i) asked[i] = from.get(place.start + i < place.end);
  const PairTaps taps(c, place.channel);
  float x[kHistory + kAhead][2];
  pair_history<T, Kind>(c, p.segments.states, place, x);
  for (int first = place.start; first < place.end; first += kAhead) {
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      T::widen_pair(asked[i], x[kHistory + i][0], x[kHistory + i][1]);
      asked[i] = from.get(first + kAhead + i < place.end);
      float y[2];
#pragma unroll
      for (int which = 0; which < 2; ++which) {
        y[which] = taps.convolve<Kind>(c, which, x + i);
        if (Kind::silu(c)) y[which] *= sigmoid(y[which]);
      }
      if (first + i < place.end) to.put(y);
    }
#pragma unroll
    for (int i = 0; i < kHistory; ++i) x[i][0] = x[kAhead + i][0], x[i][1] = x[kAhead + i][1];
  }
  // The segment at the row's end writes the final state.
  if (!Kind::states(p.segments.states) || p.conv.final.data == nullptr || place.end != c.length) return;
  for (int i = 0; i < c.width - 1; ++i)
    for (int which = 0; which < 2; ++which)
      put<T>(p.conv.final, place.batch, place.channel + which, i,
             input_of<T>(c, place.batch, place.channel + which, Index{c.length} - (c.width - 1) + i));
}

// grid.x: kPairChannels channels a block; grid.y: kWarps segments of all batches (PairPlace).
template <class T>
SCANKIT_DEVICE void forward_pairs(const ForwardPairsArguments& p) {
  const PairPlace place(p.conv.common, p.segments);
  if (!place.inside) return;
  if (is_usual(p.conv.common, p.segments.states))
    forward_segment<T, CallKind<true>>(p, place);
  else
    forward_segment<T, CallKind<false>>(p, place);
}

// The backward. dx follows kHistory steps behind, where dy is complete; the walk goes as many steps past the
// segment's end. The sums of a block's segments go to a slab, in the order of the warps.
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
  // No shuffle and no shared memory: lanes are independent until put_pair_sums.
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

// Lanes without a channel or segment add zeros: put_pair_sums has a barrier for the whole block.
template <class T, class Kind>
SCANKIT_DEVICE void backward_segment(const BackwardPairsArguments& p) {
  const Common& c = p.conv.common;
  const PairPlace place(c, p.segments);
  PairSums sums = {};
  if (place.inside) BackwardPairs<T, Kind>{p, c, place, PairTaps(c, place.channel)}.run(sums);
  put_pair_sums(p, sums);
}

// Grids as the forward's; each block along y writes a slab of its own, also where it has no segment.
template <class T>
SCANKIT_DEVICE void backward_pairs(const BackwardPairsArguments& p) {
  if (is_usual(p.conv.common, p.segments.states))
    backward_segment<T, CallKind<true>>(p);
  else
    backward_segment<T, CallKind<false>>(p);
}

}  // namespace scankit::causal_conv1d

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/causal_conv1d/cuda/call_kind.cuh"

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

}  // namespace scankit::causal_conv1d

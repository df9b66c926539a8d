// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/causal_conv1d/cuda/numeric.cuh"

// One channel of one batch: its weights, its inputs before the first step, the numbers of its sequences.
// Weights and windows are indexed by how many steps back they reach, 0 to 3; those from `width` on are never
// used, not even times 0: an input may be infinite.
namespace scankit::causal_conv1d {

// The input of a step, at most width - 1 before the first.
template <class T>
SCANKIT_DEVICE float input_of(const Common& c, Index batch, Index channel, Index step) {
  if (step >= 0) return get<T>(c.x, batch, channel, step);
  return c.initial.data != nullptr && step > -c.width ? get<T>(c.initial, batch, channel, c.width - 1 + step)
                                                      : 0.0f;
}

template <class T>
struct Channel {
  const Common& c;
  const Index batch, channel;
  float weight[kMaxWidth], bias;
  const int* numbers;
  int before;

  SCANKIT_DEVICE Channel(const Common& common, Index batch_, Index channel_)
      : c(common), batch(batch_), channel(channel_) {
    if (c.weight_dtype == DType::F32)
      take<Float>();
    else if (c.weight_dtype == DType::F16)
      take<Half>();
    else
      take<BFloat>();
    numbers = c.sequence != nullptr ? c.sequence + batch * c.length : nullptr;
    before = numbers != nullptr && c.initial.data != nullptr && c.length > 0 ? numbers[0] : -1;
  }

  // All loads stand before the first use: one wait for memory instead of five.
  template <class W>
  SCANKIT_DEVICE void take() {
    typename W::Bits bits[kMaxWidth + 1] = {};
    const auto* from = static_cast<const typename W::Bits*>(c.weight) + channel * c.weight_dim_stride;
#pragma unroll
    for (int back = 0; back < kMaxWidth; ++back)
      if (back < c.width) bits[back] = from[(c.width - 1 - back) * c.weight_tap_stride];
    if (c.bias != nullptr) bits[kMaxWidth] = static_cast<const typename W::Bits*>(c.bias)[channel];
#pragma unroll
    for (int back = 0; back < kMaxWidth; ++back) weight[back] = W::widen(bits[back]);
    bias = W::widen(bits[kMaxWidth]);
  }

  SCANKIT_DEVICE int number(Index step) const { return step < 0 ? before : numbers[step]; }
  SCANKIT_DEVICE bool together(Index a, Index b) const {
    return numbers == nullptr || number(a) == number(b);
  }
  SCANKIT_DEVICE bool is_padding(Index step) const { return numbers != nullptr && numbers[step] < 0; }

  SCANKIT_DEVICE float input(Index step) const { return input_of<T>(c, batch, channel, step); }

  // `x(back)` gives the inputs. In the order of the kernels for other strides: the same bits.
  template <class Inputs>
  SCANKIT_DEVICE float convolve(Index step, const Inputs& x) const {
    float y = bias;
#pragma unroll
    for (int back = 0; back < kMaxWidth; ++back)
      if (back < c.width && together(step - back, step)) y = fmaf(weight[back], x(back), y);
    return y;
  }

  template <class Inputs>
  SCANKIT_DEVICE float output(Index step, const Inputs& x) const {
    if (is_padding(step)) return 0.0f;
    const float y = convolve(step, x);
    return c.silu ? y * sigmoid(y) : y;
  }

  // dy of dout.
  template <class Inputs>
  SCANKIT_DEVICE float differentiate(Index step, float dout, const Inputs& x) const {
    if (is_padding(step)) return 0.0f;
    if (!c.silu) return dout;
    const float y = convolve(step, x), s = sigmoid(y);
    return dout * (s * fmaf(y, 1.0f - s, 1.0f));
  }

  // The gradient of the input `step`, which may lie before the first; dy(j) is that of step + j.
  template <class Gradients>
  SCANKIT_DEVICE float input_gradient(const Backward& conv, Index step, const Gradients& dy) const {
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < kMaxWidth; ++j)
      if (j < c.width && step + j >= 0 && step + j < c.length && together(step, step + j))
        sum = fmaf(weight[j], dy(j), sum);
    const Index final = step - (c.length - (c.width - 1));
    if (conv.dfinal.data != nullptr && final >= 0) sum += get<T>(conv.dfinal, batch, channel, final);
    return sum;
  }

  // dx, or dinitial before the first step.
  SCANKIT_DEVICE void put_gradient(const Backward& conv, Index step, float gradient) const {
    if (step >= 0) {
      put<T>(conv.dx, batch, channel, step, gradient);
    } else if (conv.dinitial.data != nullptr && step > -c.width) {
      put<T>(conv.dinitial, batch, channel, c.width - 1 + step, gradient);
    }
  }

  SCANKIT_DEVICE void put_final(const SignalOut& final, int at) const {
    put<T>(final, batch, channel, at, input(Index{c.length} - (c.width - 1) + at));
  }
};

}  // namespace scankit::causal_conv1d

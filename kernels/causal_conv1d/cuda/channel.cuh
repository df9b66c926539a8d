// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/causal_conv1d/cuda/numeric.cuh"

// One channel of one batch, for the kernels that take any strides: its weights, its inputs before the
// first step, and the numbers of its sequences. With `back` counting steps into the past,
// weight[back] = weight(width - 1 - back),
//   y_t = bias + sum over back < width of weight[back] x_(t - back);  out = silu ? y sigmoid(y) : y
//   dy_t = dout_t, or dout_t silu'(y_t);  dx_t = sum over j < width of weight[j] dy_(t + j)
// and only terms of one sequence count. Weights and windows are indexed by how many steps back they reach,
// 0 to 3; those from `width` on are never used, not even times 0: an input may be infinite.
namespace scankit::causal_conv1d {

// The input of a step, which may be up to width - 1 before the first: `initial`, (batch, dim, width - 1),
// oldest first, or 0. Behind the row's last step there is none to read.
template <class T>
SCANKIT_DEVICE float input_of(const Common& c, Index batch, Index channel, Index step) {
  if (step >= 0) return get<T>(c.x, batch, channel, step);
  return c.initial.data != nullptr && step > -c.width ? get<T>(c.initial, batch, channel, c.width - 1 + step)
                                                      : 0.0f;
}

// A thread's view of one channel in one batch entry. T: the type of the signals; weights and bias have a
// type of their own, known at run time only.
template <class T>
struct Channel {
  const Common& c;
  const Index batch, channel;
  float weight[kMaxWidth], bias;
  const int* numbers;  // of each step's sequence, of this batch; null: all one
  int before;          // the number that `initial` belongs to: step 0's; -1: there is no such input

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

  // Reads the weights, of type W, and the bias. All loads are before the first use: one wait for memory
  // instead of five.
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

  // The number of a step's sequence, and whether two steps are of the same one. A negative number
  // is padding.
  SCANKIT_DEVICE int number(Index step) const { return step < 0 ? before : numbers[step]; }
  SCANKIT_DEVICE bool together(Index a, Index b) const {
    return numbers == nullptr || number(a) == number(b);
  }
  SCANKIT_DEVICE bool is_padding(Index step) const { return numbers != nullptr && numbers[step] < 0; }

  SCANKIT_DEVICE float input(Index step) const { return input_of<T>(c, batch, channel, step); }

  // y of a step; `x(back)` gives the inputs. The order of the terms, from the bias and the present into
  // the past, is that of all the other kernels: the same bits.
  template <class Inputs>
  SCANKIT_DEVICE float convolve(Index step, const Inputs& x) const {
    float y = bias;
#pragma unroll
    for (int back = 0; back < kMaxWidth; ++back)
      if (back < c.width && together(step - back, step)) y = fmaf(weight[back], x(back), y);
    return y;
  }

  // out of a step: 0 for padding, whatever the inputs are.
  template <class Inputs>
  SCANKIT_DEVICE float output(Index step, const Inputs& x) const {
    if (is_padding(step)) return 0.0f;
    const float y = convolve(step, x);
    return c.silu ? y * sigmoid(y) : y;
  }

  // dy of a step, from its dout. Padding has none. y is computed again, rather than saved by the forward.
  template <class Inputs>
  SCANKIT_DEVICE float differentiate(Index step, float dout, const Inputs& x) const {
    if (is_padding(step)) return 0.0f;
    if (!c.silu) return dout;
    const float y = convolve(step, x), s = sigmoid(y);
    return dout * (s * fmaf(y, 1.0f - s, 1.0f));
  }

  // The gradient of the input `step`, which may be before the first; dy(j) is that of step + j. The last
  // width - 1 inputs also get the final state's gradient, since they are the final state.
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

  // To dx or, before the first step, to dinitial. Steps that neither has are dropped.
  SCANKIT_DEVICE void put_gradient(const Backward& conv, Index step, float gradient) const {
    if (step >= 0) {
      put<T>(conv.dx, batch, channel, step, gradient);
    } else if (conv.dinitial.data != nullptr && step > -c.width) {
      put<T>(conv.dinitial, batch, channel, c.width - 1 + step, gradient);
    }
  }

  // The final state's entry `at`: one of the last width - 1 inputs, which in a short row may come
  // from `initial`.
  SCANKIT_DEVICE void put_final(const SignalOut& final, int at) const {
    put<T>(final, batch, channel, at, input(Index{c.length} - (c.width - 1) + at));
  }
};

}  // namespace scankit::causal_conv1d

// SPDX-License-Identifier: Apache-2.0
#pragma once
// The one description of a causal depthwise convolution's parameters, read by the CPU kernels, the CUDA
// kernels (nvcc and NVRTC) and the bindings. No standard header: NVRTC has none.
//
//   y_t = bias + sum over k < width of weight_k x_(t - width + 1 + k);   out = silu ? y sigmoid(y) : y
//
// x before the first step is `initial`, oldest first, or 0. With `sequence`, the steps of several packed
// sequences follow each other: only terms of the same number count, `initial` belongs to the sequence of step
// 0, and where the number is negative (padding) out is 0. All strides are in elements and may be anything.
namespace scankit::causal_conv1d {

using Index = long long;

enum class DType : int { F32 = 0, F16 = 1, BF16 = 2 };

inline constexpr int kMaxWidth = 4;
inline constexpr int kMinWidth = 2;

// (batch, dim, steps)
struct Signal {
  const void* data;
  Index batch_stride, dim_stride, step_stride;
};
struct SignalOut {
  void* data;
  Index batch_stride, dim_stride, step_stride;
};

struct Common {
  int batch, dim, length, width;
  DType dtype;         // of every Signal
  DType weight_dtype;  // of weight and bias
  bool silu;
  Signal x;
  const void* weight;  // (dim, width)
  Index weight_dim_stride, weight_tap_stride;
  const void* bias;     // (dim), unit stride; null: none
  const int* sequence;  // (batch, length) contiguous; null: all one sequence
  Signal initial;       // (batch, dim, width - 1); data null: zeros
};

struct Forward {
  Common common;
  SignalOut out;
  SignalOut final;  // the last width - 1 inputs, `initial` included; data null: not wanted
};

// dweight (dim, width) and dbias (dim) are fp32.
struct Backward {
  Common common;
  Signal dout;
  Signal dfinal;  // data null: none
  SignalOut dx;
  SignalOut dinitial;  // data null: not wanted
  float* dweight;
  Index dweight_dim_stride, dweight_tap_stride;
  float* dbias;  // unit stride; null: none
  bool add;      // to what dweight and dbias hold
};

// Decoding: `state` holds the last inputs of a sequence, oldest first, and takes the new ones in. With
// `positions` it is a ring: the new inputs are written from slot positions[b] mod state_length on, the ones
// before lie before them. With `entries` batch b has the state entries[b]; a negative one is padding, whose
// out is 0. common.sequence and common.initial are not used.
struct Update {
  Common common;
  SignalOut out;    // may be x
  SignalOut state;  // (state_entries, dim, state_length)
  int state_length, state_entries;
  const int* positions;
  const int* entries;
};

}  // namespace scankit::causal_conv1d

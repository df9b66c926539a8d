// SPDX-License-Identifier: Apache-2.0
#pragma once
// The one description of a selective scan's parameters, read by the CPU kernels, the CUDA kernels (nvcc and
// NVRTC) and the bindings. No standard header: NVRTC has none.
//
//   dt = delta + delta_bias;  dt = softplus ? (dt <= 20 ? log1p(exp(dt)) : dt) : dt
//   h_l = exp(dt_l A) h_{l-1} + dt_l u_l B_l;   y_l = sum_n C_l h_l + D u_l;   out_z = y silu(z)
//
// Shapes: u, delta, z, out, dout (batch, dim, length), last stride 1; A (dim, states); D, delta_bias (dim). B
// and C, each by itself, variable: (batch, groups, states, length), last stride 1, of u's type; or constant:
// (dim, states), of A's type. `dim` is split evenly over `groups`. Strides are in elements; those of fp32
// tensors that hold complex numbers in fp32 numbers.
//
// Complex A: the numbers of A, of a constant B or C, and the states are pairs (real, imaginary part) of fp32;
// those of a variable B or C stand as pairs of steps, (batch, groups, states, 2 length); y_l = 2 Re(sum_n C_l
// h_l) + D u_l. A gradient is d/d real part + i d/d imaginary part (torch's convention).
namespace scankit::selective_scan {

using Index = long long;

enum class DType : int { F32 = 0, F16 = 1, BF16 = 2 };  // of u, delta, B, C, z, out, dout and their gradients

inline constexpr int kStateInterval = 32;  // steps between two saved states
inline constexpr int kMaxStates = 256;

// A tensor (batch, dim, length) with unit last stride.
struct Sequence {
  const void* data;
  Index batch_stride, dim_stride;
};
struct SequenceOut {
  void* data;
  Index batch_stride, dim_stride;
};
// A variable B or C: (batch, groups, states, length) with unit last stride.
struct Projection {
  const void* data;
  Index batch_stride, group_stride, state_stride;
};

// A, a constant B or C: (dim, states). data null: it is a variable one.
struct Matrix {
  const float* data;
  Index dim_stride, state_stride;
};

// The saved states, `x` of the interface: fp32, element (b, d, chunk, s) at
//   data[b * batch_stride + d * dim_stride + chunk * chunk_stride + offset(chunk, s)]
// chunk c holds h after step min(32 (c + 1), length) - 1. offset is s for all chunks but the last, whose
// states stand at the odd places of its 2N wide row: x[:, :, -1, 1::2] is the last state, as every caller of
// upstream's module reads it. With chunk_stride == states the storage is (chunks + 1) * states a channel; a
// contiguous clone has 2 * states. Complex states are two numbers each: s counts pairs, strides count
// numbers.
//
// Of packed sequences (Packed): chunks are those of each sequence by itself, chunk c of sequence s stands at
// chunk cu_seqlens[s] / 32 + s + c, offset is s for all of them, and no row is wide; there is room for
// packed_chunks(length, sequences) chunks.
struct SavedStates {
  float* data;  // null: not saved (inference), or not given (backward recomputes)
  Index batch_stride, dim_stride, chunk_stride;
};

// States of the recurrence beside a scan: fp32, (batch, dim, states), of packed sequences (sequences, dim,
// states); complex ones are pairs of numbers. Unit last stride (complex: a pair's two numbers are adjacent).
struct States {
  const float* data;  // null: none
  Index batch_stride, dim_stride;
};

// Several sequences in one row: batch is 1 and sequence s has the steps [cu_seqlens[s], cu_seqlens[s + 1]),
// each begun from its own initial state. cu_seqlens lies where the tensors do, starts with 0, does not fall
// and ends with length; the CPU's callers check that, a kernel on a device holds what it reads within [0,
// length] (whoever launches cannot look without waiting).
struct Packed {
  const int* cu_seqlens;  // null: none, each batch entry is one sequence
  int sequences;
};

struct Common {
  int batch, dim, length, states, groups;
  DType dtype;
  bool softplus;
  Sequence u, delta;
  Sequence z;  // data null: no gate
  const float* A;
  Index A_dim_stride, A_state_stride;
  Projection B, C;
  bool complex;
  Matrix constant_B, constant_C;
  const float* D;           // null: none; (dim), unit stride
  const float* delta_bias;  // null: none
  States initial_state;     // null: zero
  Packed packed;
};

// out.data null: only the states are wanted (a backward that was given none), nothing else is written.
struct Forward {
  Common common;
  SequenceOut out, out_z;  // out_z null without z
  SavedStates x;
  float* last_state;  // null, or the state after each sequence's last step, contiguous, in States' shape
};

// Gradients, which overlap neither an input nor each other: without x, states may stand in du before it is
// written. dA (dim, states) contiguous fp32, summed over batch; dB, dC fp32 (batch, groups, states, length)
// contiguous, summed over the channels of the group and rounded to dtype by the binding, or as dA where B or
// C is constant; dD, ddelta_bias (dim) fp32. The CUDA kernels also round dB and dC themselves.
struct Backward {
  Common common;
  Sequence dout;
  Sequence out;  // the ungated output; read where z is given
  SavedStates x;
  SequenceOut du, ddelta, dz;
  SequenceOut out_z;                       // recomputed where data is not null
  float *dA, *dB, *dC, *dD, *ddelta_bias;  // dD and ddelta_bias null where D and delta_bias are
  void *rounded_dB, *rounded_dC;           // of dtype, in place of dB, dC; CUDA and a variable B, C only
  States dlast_state;                      // the gradient of last_state; null: zero
  float* dinitial_state;                   // null, or contiguous, in States' shape
};

// B or C of one step: (batch, groups, states), unit last stride.
struct StepProjection {
  const void* data;
  Index batch_stride, group_stride;
};

// One step of decoding, a real A:
//   state = exp(dt A) state + dt x B;   out = (sum_n C state + D x) silu(z)
// The state, (batch, dim, states) with unit last stride, is changed in place; where it is of 16 bits, out is
// made from the state before its rounding. x, dt, z, out: (batch, dim), any strides. A (dim, states), fp32;
// D, dt_bias (dim), unit stride, for 16-bit models of either dtype.
struct Update {
  int batch, dim, states, groups;
  DType dtype;                             // of x, dt, z, out, B and C
  DType state_dtype, D_dtype, bias_dtype;  // each F32 or dtype
  bool softplus;
  void* state;
  Index state_batch_stride, state_dim_stride;
  Sequence x, dt;
  Sequence z;  // data null: no gate
  SequenceOut out;
  const float* A;
  Index A_dim_stride, A_state_stride;
  StepProjection B, C;
  const void* D;        // null: none
  const void* dt_bias;  // null: none
};

#ifndef __CUDACC_RTC__  // which takes no host function
// static: inline code must not be shared between instruction sets (the linker keeps one copy for all).
// fp32 numbers of a state.
[[maybe_unused]] static constexpr int parts_of(const Common& c) { return c.complex ? 2 : 1; }
// Of a channel.
[[maybe_unused]] static constexpr int numbers_of(const Common& c) { return c.states * parts_of(c); }
[[maybe_unused]] static constexpr bool has_constant(const Common& c) {
  return c.constant_B.data || c.constant_C.data;
}
// Each has its own initial and last state.
[[maybe_unused]] static constexpr int sequences_of(const Common& c) {
  return c.packed.cu_seqlens ? c.packed.sequences : c.batch;
}
[[maybe_unused]] static constexpr Index chunk_count(Index length) {
  return (length + kStateInterval - 1) / kStateInterval;
}
[[maybe_unused]] static constexpr Index packed_chunks(Index length, Index sequences) {
  return length / kStateInterval + sequences;
}
[[maybe_unused]] static constexpr Index saved_chunks(Index length) {
  return length > 0 ? chunk_count(length) : 1;
}
#endif

}  // namespace scankit::selective_scan

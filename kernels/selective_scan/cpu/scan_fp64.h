// SPDX-License-Identifier: Apache-2.0
#pragma once
// The selective scan of params.h in double: for gradcheck and as a reference, plain and on one thread. Its
// backward is explicit and linear in the length.
#include "kernels/selective_scan/params.h"

namespace scankit::selective_scan {

// A tensor of doubles. Strides are in doubles, for complex numbers too, whose two parts are adjacent. data
// is null where the tensor is absent.
struct Array64 {
  double* data;
  Index stride[3];
};
// B, C and their gradients: (batch, groups, states, steps), or (dim, states) where constant.
struct Projection64 {
  double* data;
  bool constant;
  Index batch_stride;
  Index row_stride;  // of groups, or of channels where constant
  Index state_stride, step_stride;
};

// The inputs that forward and backward share; their meaning is that of Common in params.h.
struct Scan64 {
  int batch, dim, length, states, groups, sequences;
  bool softplus, complex;
  const int* cu_seqlens;  // null: each batch entry is a sequence; else batch is 1
  Array64 u, delta, z;    // (batch, dim, length)
  Array64 A;              // (dim, states)
  Projection64 B, C;
  Array64 D, delta_bias;  // (dim)
  Array64 initial_state;  // (sequences, dim, states)
};

struct Forward64 {
  Scan64 scan;
  Array64 out, out_z, last_state;
};

// All results are zero when the backward begins.
struct Backward64 {
  Scan64 scan;
  Array64 dout, dlast_state;
  Array64 du, ddelta, dz, dA, dD, ddelta_bias, dinitial_state;
  Projection64 dB, dC;
};

// Null, or why it failed.
const char* forward_fp64(const Forward64& forward);
const char* backward_fp64(const Backward64& backward);

}  // namespace scankit::selective_scan

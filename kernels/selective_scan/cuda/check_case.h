// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "kernels/selective_scan/cuda/check_device.h"
#include "kernels/selective_scan/cuda/choice.h"
#include "kernels/selective_scan/params.h"

namespace scankit::selective_scan {

// One point of the contract. Pads are elements between rows that belong to nobody; `shift` moves every array
// off its 16-byte alignment; `channel_major`: strides (length, batch * length), as mamba's inner function has
// them.
struct CaseShape {
  unsigned seed;
  int batch, dim, length, states, groups;
  DType dtype;
  bool softplus, z, D, bias;
  int pad, shift;
  bool channel_major, A_transposed;
  bool wide_x;                  // states 2N apart, as a contiguous clone of x has them
  bool without_x;               // the backward is not given the states
  bool out_z;                   // the backward recomputes out_z
  bool rounded;                 // dB and dC in dtype, not fp32
  int segments;                 // that the length is cut into; 0: as the planner would
  int kind;                     // 4: complex, 2: constant B, 1: constant C
  bool initial, last;           // an initial state and its gradient; a last state and its gradient
  std::vector<int> cu_seqlens;  // not empty: packed sequences
  bool garbage;                 // cu_seqlens holds anything: nothing may be written outside, no more is asked
  const Choice *forward = nullptr, *backward = nullptr;  // of a plain case; null: the planner's
};

struct CaseVerdict {
  bool right;
  std::string text;
};

CaseVerdict run_case(Gpu& gpu, const CaseShape& shape);
// One step of decoding, everything drawn from the seed.
CaseVerdict run_step(Gpu& gpu, unsigned seed);
// "out 0.41 of its bound, ..." over all cases run.
std::string worst_errors();

}  // namespace scankit::selective_scan

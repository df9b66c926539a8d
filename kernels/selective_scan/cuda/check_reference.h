// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

// The selective scan in double, one step after the other as its definition says, with its adjoint written by
// hand. Shares no code with the kernels. Arrays are contiguous, in the order of params.h's shapes; inputs are
// already rounded; complex numbers are pairs.
namespace scankit::selective_scan {

struct ReferenceProblem {
  int batch, dim, length, states, groups;
  bool softplus, complex = false, constant_B = false, constant_C = false;
  std::vector<double> u, delta, A, B, C;
  std::vector<double> z, D, delta_bias;            // empty: none
  std::vector<double> initial_state, dlast_state;  // empty: zero
  std::vector<int> cu_seqlens;                     // empty: each batch entry is one sequence
  std::vector<double> dout;
};

struct ReferenceResult {
  std::vector<double> out, out_z, last;  // last (sequences, dim, states)
  std::vector<double> du, ddelta, dz, dA, dB, dC, dD, ddelta_bias, dinitial;
};

ReferenceResult run_reference(const ReferenceProblem& problem);

}  // namespace scankit::selective_scan

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

// A selective scan in double precision: the plain recurrence, and its gradient written out, linear in
// the length. It follows the definition (kernels/selective_scan/params.h, top) and shares no code
// with any kernel.
namespace scankit::validate {

// Row-major and contiguous: u, delta, z, dout (batch, dim, length); A (dim, states); D,
// delta_bias (dim). B, C (batch, groups, states, length), or (dim, states) where constant.
// D, z and delta_bias are absent where empty. Complex: A, a constant B or C, and the
// states are pairs of numbers, real part first; so are the steps of a variable B or C,
// whose rows are then 2 length long; y is twice the real part of the sum over the states.
//
// initial_state, dlast_state (batch, dim, states): zero where empty. cu_seqlens, where not empty: batch is 1
// and sequence s has the steps cu_seqlens[s] to cu_seqlens[s + 1], begun from its own state; the states are
// then (sequences, dim, states).
struct OracleInput {
  int batch = 1, dim = 1, length = 1, states = 1, groups = 1;
  bool softplus = false;
  bool complex = false, constant_B = false, constant_C = false;
  std::vector<double> u, delta, A, B, C, D, z, delta_bias, dout;
  std::vector<double> initial_state, dlast_state;
  std::vector<int> cu_seqlens;
};

// Shapes as those of the inputs; last_state and dinitial_state (batch, dim, states). `dout` belongs to out_z
// where z is given, else to out. The gradient of a complex number is d/d real part + i d/d imaginary part, as
// torch has it.
struct OracleOutput {
  std::vector<double> out, out_z, last_state;
  std::vector<double> du, ddelta, dA, dB, dC, dD, dz, ddelta_bias, dinitial_state;
};

OracleOutput run_oracle(const OracleInput& input);

}  // namespace scankit::validate

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "validate/cases.h"

// What a selective scan is, in double precision: the plain recurrence, and its gradient written out, linear
// in length. Follows the definition (kernels/selective_scan/params.h, top) and shares no code with any
// kernel.
namespace scankit::validate {

// Row-major and contiguous: u, delta, z, dout (batch, dim, length); A (dim, states); B, C (batch, groups,
// states, length); D, delta_bias (dim). D, z and delta_bias are absent where empty.
struct OracleInput {
  int batch = 1, dim = 1, length = 1, states = 1, groups = 1;
  bool softplus = false;
  std::vector<double> u, delta, A, B, C, D, z, delta_bias, dout;
};

// Shapes as those of the inputs; last_state (batch, dim, states). `dout` belongs to out_z where z is given,
// else to out.
struct OracleOutput {
  std::vector<double> out, out_z, last_state;
  std::vector<double> du, ddelta, dA, dB, dC, dD, dz, ddelta_bias;
};

OracleOutput run_oracle(const OracleInput& input);
OracleInput oracle_input(const Case& c);

}  // namespace scankit::validate

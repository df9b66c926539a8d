// SPDX-License-Identifier: Apache-2.0
// The second source file of the test module: leaving it out of the link makes own_symbol_undefined.
#include "scan.h"

#include <ATen/ops/zeros_like.h>

#include <cmath>

at::Tensor selective_scan_reference(const at::Tensor& u, const at::Tensor& delta, const at::Tensor& A,
                                    const at::Tensor& B, const at::Tensor& C) {
  at::Tensor out = at::zeros_like(u);
  auto u_ = u.accessor<float, 3>(), delta_ = delta.accessor<float, 3>(), out_ = out.accessor<float, 3>();
  auto B_ = B.accessor<float, 3>(), C_ = C.accessor<float, 3>();
  auto A_ = A.accessor<float, 2>();
  for (int64_t b = 0; b < u.size(0); ++b)
    for (int64_t d = 0; d < u.size(1); ++d)
      for (int64_t n = 0; n < A.size(1); ++n) {
        float state = 0;
        for (int64_t l = 0; l < u.size(2); ++l) {
          state = std::exp(delta_[b][d][l] * A_[d][n]) * state + delta_[b][d][l] * B_[b][n][l] * u_[b][d][l];
          out_[b][d][l] += state * C_[b][n][l];
        }
      }
  return out;
}

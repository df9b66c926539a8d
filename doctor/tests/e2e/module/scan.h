// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <ATen/core/Tensor.h>

// u, delta (batch, dim, L); A (dim, N); B, C (batch, N, L); fp32 on the CPU. Returns out, shaped as u.
at::Tensor selective_scan_reference(const at::Tensor& u, const at::Tensor& delta, const at::Tensor& A,
                                    const at::Tensor& B, const at::Tensor& C);

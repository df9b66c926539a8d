// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/cuda/launch.h"

// Where each kernel stands in kCudaKernels.
namespace scankit::selective_scan {

int forward_kernel_index(int variant, DType dtype);
int backward_kernel_index(int variant, DType dtype);
int general_kernel_index(bool backward, const Common& c);
// For a constant B or C. Its ends kernel is the forward's where B, the backward's where C is constant.
int constant_kernel_index(bool backward, bool ends, DType dtype);
int ends_kernel_index(bool backward, DType dtype);
int update_kernel_index(DType dtype);
int reduce_kernel_index();

}  // namespace scankit::selective_scan

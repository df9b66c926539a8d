// SPDX-License-Identifier: Apache-2.0
#pragma once
// Problems for the planner's tests, whose memory nobody looks at.
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "kernels/selective_scan/cuda/arguments.h"
#include "kernels/selective_scan/cuda/choice.h"
#include "kernels/selective_scan/cuda/launch.h"

namespace scankit::selective_scan {

// But for a multiprocessor: of it nothing is measured (dispatch_table.def), so that choices are predicted.
inline constexpr device::DeviceFacts kH200 = {90, 131, 232448, 233472};
inline constexpr device::DeviceFacts kPascal = {61, 20, 49152, 98304};

inline Common problem(int batch, int dim, int length, int states, int groups = 1, DType dtype = DType::BF16) {
  Common c = {};
  c.batch = batch, c.dim = dim, c.length = length, c.states = states, c.groups = groups, c.dtype = dtype;
  return c;
}
inline Backward backward_of(const Common& common) {
  static float sink;
  Backward b = {};
  b.common = common;
  b.x.data = &sink;
  b.dA = b.dB = b.dC = &sink;
  return b;
}
inline std::string symbol(const device::Plan& plan, int launch) {
  return kCudaKernels[plan.launches[launch].kernel].symbol;
}
inline std::string unit(const device::Plan& plan, int launch) {
  return kCudaKernels[plan.launches[launch].kernel].unit;
}

}  // namespace scankit::selective_scan

// SPDX-License-Identifier: Apache-2.0
#pragma once
namespace scankit::selective_scan {

// What one core does in registers, in numbers (lanes) a nanosecond.
struct Rates {
  double multiply, fma, exp2;
};
Rates rates_avx512();
Rates rates_avx2();
Rates rates_portable();

}  // namespace scankit::selective_scan

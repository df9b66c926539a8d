// SPDX-License-Identifier: Apache-2.0
#pragma once
// The 16-bit storage types of the tensors, as bits: the compiler's own types would call into libgcc.
namespace scankit::selective_scan {

struct Half {
  unsigned short bits;
};
struct BFloat16 {
  unsigned short bits;
};

}  // namespace scankit::selective_scan

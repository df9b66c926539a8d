// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stdint.h>

#include "kernels/selective_scan/params.h"

// Whether the kernels may take eight elements of any row at once (`aligned` of their arguments). The host
// looks once, instead of every thread at every load. What is not there is aligned.
namespace scankit::selective_scan {

inline bool at_16_bytes(const void* data, Index stride, Index other, DType dtype) {
  const Index size = dtype == DType::F32 ? 4 : 2;
  return reinterpret_cast<uintptr_t>(data) % 16 == 0 && stride * size % 16 == 0 && other * size % 16 == 0;
}
inline bool is_aligned(const Sequence& s, const Common& c) {
  return !s.data || at_16_bytes(s.data, s.batch_stride, s.dim_stride, c.dtype);
}
inline bool is_aligned(const SequenceOut& s, const Common& c) {
  return !s.data || at_16_bytes(s.data, s.batch_stride, s.dim_stride, c.dtype);
}
inline bool is_aligned(const Projection& p, const Common& c) {
  return at_16_bytes(p.data, p.batch_stride, p.group_stride, c.dtype) &&
         at_16_bytes(p.data, p.state_stride, 0, c.dtype);
}

inline bool is_aligned(const Common& c) {
  return c.length % 8 == 0 && is_aligned(c.u, c) && is_aligned(c.delta, c) && is_aligned(c.z, c) &&
         is_aligned(c.B, c) && is_aligned(c.C, c);
}
inline bool is_aligned(const Forward& f) {
  return is_aligned(f.common) && is_aligned(f.out, f.common) && is_aligned(f.out_z, f.common);
}
inline bool is_aligned(const Backward& b) {
  const Common& c = b.common;
  return is_aligned(c) && is_aligned(b.dout, c) && is_aligned(b.out, c) && is_aligned(b.du, c) &&
         is_aligned(b.ddelta, c) && is_aligned(b.dz, c) && is_aligned(b.out_z, c);
}

}  // namespace scankit::selective_scan

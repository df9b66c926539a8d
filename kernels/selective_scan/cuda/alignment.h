// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stdint.h>

#include "kernels/selective_scan/params.h"

// Whether the kernels may take eight elements of any row at once (`aligned` of their arguments, 16 bytes), or
// four 16-bit ones (`halves`, 8 bytes). The host looks once, instead of every thread at every load. What is
// not there is aligned.
namespace scankit::selective_scan {

// Whether data and two strides, in elements, are multiples of `bytes`.
inline bool at_places(Index bytes, const void* data, Index stride, Index other, DType dtype) {
  const Index size = dtype == DType::F32 ? 4 : 2;
  return reinterpret_cast<Index>(data) % bytes == 0 && stride * size % bytes == 0 &&
         other * size % bytes == 0;
}
inline bool is_aligned(const Sequence& s, const Common& c, Index bytes = 16) {
  return !s.data || at_places(bytes, s.data, s.batch_stride, s.dim_stride, c.dtype);
}
inline bool is_aligned(const SequenceOut& s, const Common& c, Index bytes = 16) {
  return !s.data || at_places(bytes, s.data, s.batch_stride, s.dim_stride, c.dtype);
}
inline bool is_aligned(const Projection& p, const Common& c, Index bytes = 16) {
  return !p.data || (at_places(bytes, p.data, p.batch_stride, p.group_stride, c.dtype) &&
                     at_places(bytes, p.data, p.state_stride, 0, c.dtype));
}

// The length counts too, in pieces of eight steps (four for 8 bytes): the kernels then take a piece as
// there or not.
inline bool is_aligned(const Common& c, Index bytes = 16) {
  return c.length % (bytes / 2) == 0 && is_aligned(c.u, c, bytes) && is_aligned(c.delta, c, bytes) &&
         is_aligned(c.z, c, bytes) && is_aligned(c.B, c, bytes) && is_aligned(c.C, c, bytes);
}
inline bool is_aligned(const Forward& f) {
  return is_aligned(f.common) && is_aligned(f.out, f.common) && is_aligned(f.out_z, f.common);
}
inline bool is_aligned(const Backward& b, Index bytes = 16) {
  const Common& c = b.common;
  return is_aligned(c, bytes) && is_aligned(b.dout, c, bytes) && is_aligned(b.out, c, bytes) &&
         is_aligned(b.du, c, bytes) && is_aligned(b.ddelta, c, bytes) && is_aligned(b.dz, c, bytes) &&
         is_aligned(b.out_z, c, bytes);
}

}  // namespace scankit::selective_scan

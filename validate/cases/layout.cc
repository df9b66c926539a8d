// SPDX-License-Identifier: Apache-2.0
#include "validate/cases/layout.h"

#include <algorithm>
#include <utility>

namespace scankit::validate {
namespace {

// Strides of rows of `pitch` elements, outer axes dense.
std::vector<std::int64_t> row_major(const std::vector<std::int64_t>& shape, std::int64_t pitch) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  if (shape.size() >= 2) strides[shape.size() - 2] = pitch;
  for (std::size_t i = shape.size() - 1; i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

void place(TensorSpec& spec, std::int64_t offset) {
  spec.offset = offset;
  std::int64_t last = 0;
  for (std::size_t i = 0; i < spec.shape.size(); ++i)
    last += std::max<std::int64_t>(spec.shape[i] - 1, 0) * spec.strides[i];
  spec.storage = offset + last + 1 + kGuard;
}

}  // namespace

void lay_out(TensorSpec& spec, Layout layout) {
  const std::int64_t length = spec.shape.back();
  spec.strides = row_major(spec.shape, layout == Layout::LongerRows ? length + 3 : length);
  std::int64_t offset = layout == Layout::AtStart ? 0 : kGuard + (layout == Layout::Misaligned ? 3 : 0);
  const bool sequence = spec.shape.size() == 3;
  if (sequence && (layout == Layout::ChannelMajor || layout == Layout::HalfOfWider)) {
    const std::int64_t batch = spec.shape[0], dim = spec.shape[1];
    spec.strides = {length, batch * length, 1};
    if (layout == Layout::HalfOfWider) offset += dim * batch * length;
  }
  place(spec, offset);
}

void lay_out_matrix(TensorSpec& spec, MatrixLayout layout) {
  spec.strides = row_major(spec.shape, spec.shape.back());
  if (layout == MatrixLayout::Transposed) spec.strides = {1, spec.shape[0]};
  place(spec, kGuard);
}

}  // namespace scankit::validate

// SPDX-License-Identifier: Apache-2.0
#include "kernels/binding/allocate.h"

// New tensors by their purpose, made of the two functions that call torch.
namespace scankit {
namespace {

void contiguous_strides(const Index* shape, int dims, Index* strides) {
  Index step = 1;
  for (int i = dims - 1; i >= 0; --i) {
    strides[i] = step;
    step *= shape[i] > 0 ? shape[i] : 1;
  }
}

// Whether a tensor (batch, dim, length) has one of the two dense layouts with unit last stride:
// contiguous, or channels before batch. torch.empty_like() would keep these strides, so that they can be
// asked for directly.
bool is_dense_sequence(const Tensor& t) {
  const Index *n = t.shape, *s = t.stride;
  if (s[2] != 1 || n[0] * n[1] * n[2] == 0) return false;
  return (s[1] == n[2] && s[0] == n[1] * n[2]) || (s[0] == n[2] && s[1] == n[0] * n[2]);
}

}  // namespace

bool allocate_sequence(const Call& call, const char* name, const Tensor& like, Output* output) {
  if (like.kind == DeviceKind::Cuda && is_dense_sequence(like))
    return allocate_strided(call, name, like, like.element, {like.shape, like.stride, like.dims}, output);
  if (!allocate_like(call, name, like, output)) return false;
  if (output->tensor.stride[2] == 1 || like.shape[2] <= 1) return true;
  // `like` overlaps itself (an expanded tensor), and torch chose another order of strides for the new one.
  Index strides[kMaxDims];
  contiguous_strides(like.shape, like.dims, strides);
  return allocate_strided(call, name, like, like.element, {like.shape, strides, like.dims}, output);
}

bool allocate_float(const Call& call, const char* name, const Tensor& beside, const Index* shape,
                    const Index* strides, int dims, Output* output) {
  Index contiguous[kMaxDims];
  contiguous_strides(shape, dims, contiguous);
  return allocate_strided(call, name, beside, Element::Float32, {shape, strides ? strides : contiguous, dims},
                          output);
}

bool allocate_number(const Call& call, const char* name, const Tensor& like, const Index* shape,
                     const Index* strides, int dims, Output* output) {
  Index contiguous[kMaxDims];
  contiguous_strides(shape, dims, contiguous);
  return allocate_strided(call, name, like, like.element, {shape, strides ? strides : contiguous, dims},
                          output);
}

// As a tensor of float32, which rounds the size up to four bytes.
bool allocate_bytes(const Call& call, const Tensor& beside, size_t bytes, Output* output) {
  const Index size = static_cast<Index>((bytes + sizeof(float) - 1) / sizeof(float)), step = 1;
  return allocate_strided(call, "the workspace", beside, Element::Float32, {&size, &step, 1}, output);
}

}  // namespace scankit

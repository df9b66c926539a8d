// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/binding/tensor.h"

namespace scankit {

// A new tensor and its description. torch allocates all of them itself, so that its caching allocator,
// streams and CUDA graphs know them.
struct Output {
  Ref object;
  Tensor tensor;
};

// (batch, dim, length) as torch.empty_like makes it: dtype, device and, where it is dense, layout of `like`.
// Unit last stride whatever that layout.
bool allocate_sequence(const Call& call, const char* name, const Tensor& like, Output* output);

struct Layout {
  const Index *shape, *strides;
  int dims;
};

// The two that torch itself makes; those above and below are made of them. What torch.empty_like gives:
bool allocate_like(const Call& call, const char* name, const Tensor& like, Output* output);
// And torch.empty_strided, on the device of `beside`.
bool allocate_strided(const Call& call, const char* name, const Tensor& beside, Element element,
                      const Layout& layout, Output* output);

// float32 on the device of `beside`; strides null: contiguous.
bool allocate_float(const Call& call, const char* name, const Tensor& beside, const Index* shape,
                    const Index* strides, int dims, Output* output);

// The same with the dtype of `like`, a float or complex one.
bool allocate_number(const Call& call, const char* name, const Tensor& like, const Index* shape,
                     const Index* strides, int dims, Output* output);

// `bytes` of memory on the device of `beside`.
bool allocate_bytes(const Call& call, const Tensor& beside, size_t bytes, Output* output);

}  // namespace scankit

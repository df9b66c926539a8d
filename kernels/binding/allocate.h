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

// Shape and strides, in elements, of `dims` dimensions (at most kMaxDims). Borrowed from the caller.
struct Layout {
  const Index *shape, *strides;
  int dims;
};

// torch.empty_like. This function and the next one are the only ones that call torch; python_allocate.cc
// and binding_torch/libtorch.cc each implement both. The others in this header are made of them.
bool allocate_like(const Call& call, const char* name, const Tensor& like, Output* output);
// torch.empty_strided, on the device of `beside`.
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

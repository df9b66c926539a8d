// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/binding/tensor.h"

// What every function asks of its arguments. Each check sets RuntimeError and returns false where it fails.
namespace scankit {

struct ShapeText {
  char text[96];
};
ShapeText shape_text(const Index* shape, int dims);  // "(2, 3)"

// `meaning` names the dimensions.
bool check_shape(const Call& call, const Tensor& t, const Index* shape, int dims, const char* meaning);
bool check_element(const Call& call, const Tensor& t, Element element, const char* as_what);
bool check_device(const Call& call, const Tensor& t, const Tensor& beside);
// Of a tensor (batch, dim, length).
bool read_sizes(const Call& call, const Tensor& t, int* batch, int* dim, int* length);
bool check_unit_stride(const Call& call, const Tensor& t);  // in the last dimension

// 1, 0, or -1 with an error set.
int read_flag(const Call& call, const char* name, PyObject* object);

}  // namespace scankit

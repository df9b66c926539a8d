// SPDX-License-Identifier: Apache-2.0
#include "kernels/binding/checks.h"

#include <limits.h>
#include <stdio.h>

// The checks of checks.h. Their messages name the tensor, what it is and what was expected, because a
// model passes a dozen tensors at once.
namespace scankit {

ShapeText shape_text(const Index* shape, int dims) {
  ShapeText result;
  int at = snprintf(result.text, sizeof result.text, "(");
  for (int i = 0; i < dims; ++i)
    at += snprintf(result.text + at, sizeof result.text - at, i ? ", %lld" : "%lld", shape[i]);
  snprintf(result.text + at, sizeof result.text - at, dims == 1 ? ",)" : ")");
  return result;
}

// `meaning` names the dimensions.
bool check_shape(const Call& call, const Tensor& t, const Index* shape, int dims, const char* meaning) {
  bool same = t.dims == dims;
  for (int i = 0; same && i < dims; ++i) same = t.shape[i] == shape[i];
  return same || refuse(call, "%s has shape %s, expected %s: %s", t.name, shape_text(t.shape, t.dims).text,
                        shape_text(shape, dims).text, meaning);
}

bool check_element(const Call& call, const Tensor& t, Element element, const char* as_what) {
  return t.element == element || refuse(call, "%s is %s, expected %s%s", t.name, element_name(t.element),
                                        element_name(element), as_what);
}

// Different GPUs count as different devices.
bool check_device(const Call& call, const Tensor& t, const Tensor& beside) {
  if (t.kind == beside.kind && t.device == beside.device) return true;
  char names[2][24];
  const Tensor* both[] = {&t, &beside};
  for (int i = 0; i < 2; ++i)
    snprintf(names[i], sizeof names[i], both[i]->kind == DeviceKind::Cpu ? "the CPU" : "cuda:%d",
             both[i]->device);
  return refuse(call, "%s is on %s, %s on %s; all tensors must be on one device", t.name, names[0],
                beside.name, names[1]);
}

// The kernels keep extents in int.
bool read_sizes(const Call& call, const Tensor& t, int* batch, int* dim, int* length) {
  if (t.dims != 3)
    return refuse(call, "%s has shape %s, expected three dimensions: (batch, dim, length)", t.name,
                  shape_text(t.shape, t.dims).text);
  for (int i = 0; i < 3; ++i)
    if (t.shape[i] > INT_MAX / 2)
      return refuse(call, "%s has %lld in dimension %d, more than is supported", t.name, t.shape[i], i);
  *batch = static_cast<int>(t.shape[0]);
  *dim = static_cast<int>(t.shape[1]);
  *length = static_cast<int>(t.shape[2]);
  return true;
}

// The stride of a dimension with at most one element means nothing in torch, and may be anything.
bool check_unit_stride(const Call& call, const Tensor& t) {
  const int last = t.dims - 1;
  return t.stride[last] == 1 || t.shape[last] <= 1 ||
         refuse(call, "%s has stride %lld in its last dimension, expected 1; pass %s.contiguous()", t.name,
                t.stride[last], t.name);
}

int read_flag(const Call& call, const char* name, PyObject* object) {
  if (object == Py_True) return 1;
  if (object == Py_False) return 0;
  // pybind11 takes whatever has a truth value; a tensor here is an argument in the wrong place.
  if (PyObject_IsInstance(object, call.torch->tensor_type) == 0) return PyObject_IsTrue(object);
  refuse_as(PyExc_TypeError, call, "%s must be True or False, not a tensor", name);
  return -1;
}

}  // namespace scankit

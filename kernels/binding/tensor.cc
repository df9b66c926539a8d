// SPDX-License-Identifier: Apache-2.0
#include "kernels/binding/tensor.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>

#include "kernels/binding/module.h"

// What both flavors share about tensors: error messages and the check of a storage's size. Reading a
// tensor differs, and is in python_tensor.cc and binding_torch/libtorch.cc.
namespace scankit {
namespace {

// Formatted by vsnprintf() first, because PyErr_Format() does not know every conversion of printf().
bool refuse_with(PyObject* type, const Call& call, const char* format, va_list arguments) {
  char text[800];
  vsnprintf(text, sizeof text, format, arguments);
  PyErr_Format(type, "%s.%s: %s", kModule.name, call.function, text);
  return false;
}

// 0: no element that a kernel takes.
Index element_size(Element element) {
  switch (element) {
    case Element::Float16:
    case Element::Bfloat16:
      return 2;
    case Element::Float32:
    case Element::Int32:
      return 4;
    case Element::Float64:
    case Element::Complex64:
      return 8;
    case Element::Complex128:
      return 16;
    case Element::Other:
      break;
  }
  return 0;
}

}  // namespace

bool refuse(const Call& call, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  refuse_with(PyExc_RuntimeError, call, format, arguments);
  va_end(arguments);
  return false;
}

bool refuse_as(PyObject* type, const Call& call, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  refuse_with(type, call, format, arguments);
  va_end(arguments);
  return false;
}

// Names the type of the object, such as a subclass of torch.Tensor. An error that torch has
// set is replaced.
bool refuse_kind(const Call& call, const Tensor& t) {
  PyErr_Clear();
  Ref type(PyObject_Repr(type_of(t.object)));
  Ref bytes(type ? PyUnicode_AsUTF8String(type.get()) : nullptr);
  PyErr_Clear();
  return refuse(
      call,
      "%s, a %s, cannot be read: it is not a dense tensor with memory of its own on the CPU or a CUDA device",
      t.name, bytes ? PyBytes_AsString(bytes.get()) : "tensor");
}

bool refuse_dims(const Call& call, const Tensor& t, int dims) {
  return refuse(call, "%s has %d dimensions, at most %d are used", t.name, dims, kMaxDims);
}

bool refuse_negated(const Call& call, const Tensor& t) {
  return refuse(call, "%s is a lazily negated view; pass %s.resolve_neg()", t.name, t.name);
}

bool refuse_conjugated(const Call& call, const Tensor& t) {
  return refuse(call, "%s is a lazily conjugated view; pass %s.resolve_conj()", t.name, t.name);
}

bool is_empty(const Tensor& t) {
  for (int i = 0; i < t.dims; ++i)
    if (t.shape[i] == 0) return true;
  return false;
}

// The last element of the tensor must end inside of the storage. All sums are checked for overflow; torch
// has no negative strides.
bool check_storage(const Call& call, const Tensor& t, Index offset, Index bytes) {
  const Index size = element_size(t.element);
  if (size == 0 || is_empty(t)) return true;  // refused for its dtype, or never read
  Index needed = offset;
  bool beyond = offset < 0;
  for (int i = 0; i < t.dims && !beyond; ++i) {
    Index step = 0;
    beyond = t.stride[i] < 0 || __builtin_mul_overflow(t.shape[i] - 1, t.stride[i], &step) ||
             __builtin_add_overflow(needed, step, &needed);
  }
  beyond =
      beyond || __builtin_add_overflow(needed, 1, &needed) || __builtin_mul_overflow(needed, size, &needed);
  if (!beyond && needed <= bytes) return true;
  return refuse(
      call,
      "%s has a storage of %lld bytes, but its shape and strides need %lld: the storage was resized "
      "or freed after the tensor was made (FSDP frees parameters so); restore it before the call",
      t.name, bytes, beyond ? LLONG_MAX : needed);
}

bool read_optional(const Call& call, const char* name, PyObject* object, Tensor* tensor) {
  if (object == Py_None) return true;
  return read_tensor(call, name, object, tensor);
}

const char* element_name(Element element) {
  switch (element) {
    case Element::Float32:
      return "float32";
    case Element::Float16:
      return "float16";
    case Element::Bfloat16:
      return "bfloat16";
    case Element::Float64:
      return "float64";
    case Element::Complex64:
      return "complex64";
    case Element::Complex128:
      return "complex128";
    case Element::Int32:
      return "int32";
    case Element::Other:
      break;
  }
  return "another dtype";
}

// The checks of a call's arguments. Their messages name the tensor, what it is and what was expected, because a
// model passes a dozen tensors at once.

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

// New tensors by their purpose, made of the two functions that call torch.

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

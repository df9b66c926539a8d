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
  Ref type(PyObject_Repr(reinterpret_cast<PyObject*>(Py_TYPE(t.object))));
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

}  // namespace scankit

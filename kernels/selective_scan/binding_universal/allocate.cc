// SPDX-License-Identifier: Apache-2.0
#include "kernels/selective_scan/binding_universal/allocate.h"

namespace scankit {
namespace {

bool take(const Call& call, const char* name, Ref object, Output* output) {
  if (!object) return false;
  output->object = static_cast<Ref&&>(object);
  return read_tensor(call, name, output->object.get(), &output->tensor);
}

Ref size_tuple(const Index* sizes, int count) {
  Ref tuple(PyTuple_New(count));
  for (int i = 0; tuple && i < count; ++i) {
    PyObject* size = PyLong_FromLongLong(sizes[i]);
    if (!size || PyTuple_SetItem(tuple.get(), i, size) != 0) return Ref();
  }
  return tuple;
}

// dtype= and device= of a new tensor.
Ref keywords(const Call& call, PyObject* dtype, const Tensor& beside) {
  Ref dict(PyDict_New());
  Ref device(dict ? PyObject_GetAttr(beside.object, call.torch->names[kDevice]) : nullptr);
  if (!device || PyDict_SetItem(dict.get(), call.torch->names[kDtype], dtype) != 0 ||
      PyDict_SetItem(dict.get(), call.torch->names[kDevice], device.get()) != 0)
    return Ref();
  return dict;
}

Ref make(PyObject* function, Ref arguments, const Ref& keyword_arguments) {
  if (!arguments || !keyword_arguments) return Ref();
  return Ref(PyObject_Call(function, arguments.get(), keyword_arguments.get()));
}

}  // namespace

bool allocate_like(const Call& call, const char* name, const Tensor& like, Output* output) {
  return take(call, name, Ref(PyObject_CallFunctionObjArgs(call.torch->empty_like, like.object, nullptr)),
              output);
}

bool allocate_sequence(const Call& call, const char* name, const Tensor& like, Output* output) {
  if (!allocate_like(call, name, like, output)) return false;
  const int last = like.dims - 1;
  if (output->tensor.stride[last] == 1 || like.shape[last] <= 1) return true;
  // `like` overlaps itself (an expanded tensor) and torch ordered the new one's strides otherwise.
  PyObject* dtype = PyObject_GetAttr(like.object, call.torch->names[kDtype]);
  const Ref owned(dtype);
  if (!dtype) return false;
  Ref arguments(PyTuple_New(1));
  Ref sizes = size_tuple(like.shape, like.dims);
  if (!arguments || !sizes || PyTuple_SetItem(arguments.get(), 0, sizes.release()) != 0) return false;
  return take(call, name, make(call.torch->empty, static_cast<Ref&&>(arguments), keywords(call, dtype, like)),
              output);
}

bool allocate_float(const Call& call, const char* name, const Tensor& beside, const Index* shape,
                    const Index* strides, int dims, Output* output) {
  Ref arguments(PyTuple_New(strides ? 2 : 1));
  if (!arguments) return false;
  Ref sizes = size_tuple(shape, dims);
  if (!sizes || PyTuple_SetItem(arguments.get(), 0, sizes.release()) != 0) return false;
  if (strides) {
    Ref steps = size_tuple(strides, dims);
    if (!steps || PyTuple_SetItem(arguments.get(), 1, steps.release()) != 0) return false;
  }
  PyObject* function = strides ? call.torch->empty_strided : call.torch->empty;
  return take(call, name,
              make(function, static_cast<Ref&&>(arguments), keywords(call, call.torch->float32, beside)),
              output);
}

bool allocate_bytes(const Call& call, const Tensor& beside, size_t bytes, Output* output) {
  const Index size = static_cast<Index>(bytes);
  Ref arguments(PyTuple_New(1));
  Ref sizes = size_tuple(&size, 1);
  if (!arguments || !sizes || PyTuple_SetItem(arguments.get(), 0, sizes.release()) != 0) return false;
  return take(
      call, "the workspace",
      make(call.torch->empty, static_cast<Ref&&>(arguments), keywords(call, call.torch->uint8, beside)),
      output);
}

}  // namespace scankit

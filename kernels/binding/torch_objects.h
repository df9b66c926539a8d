// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/binding/dlpack.h"
#include "kernels/binding/python_api.h"

namespace scankit {

// Every attribute, method and keyword name that the module looks up on torch's objects.
enum Name {
  kShape,
  kStride,
  kDtype,
  kDataPtr,
  kGetDevice,
  kIsCuda,
  kIsCpu,
  kIsNeg,
  kIsConj,
  kDevice,
  kTo,
  kStorage,  // untyped_storage, _storage before torch 2.0; null where neither is
  kNbytes,
  kStorageOffset,
  kNameCount
};

// A function written in C, called without the interpreter: a third of the time of a call by name, which a
// tiny scan notices, with up to thirteen tensors to be asked. flags: METH_NOARGS, or METH_VARARGS, alone or
// with METH_KEYWORDS; 0: not known to be such a function.
struct DirectCall {
  PyCFunction function;
  int flags;
};

// The objects of the user's torch, looked up once, at the first call; kept for good.
struct Torch {
  PyObject* names[kNameCount];
  DirectCall methods[kNameCount];  // those of torch.Tensor that are functions written in C and take nothing
  PyObject* nothing;               // an empty tuple
  PyObject *tensor_type, *parameter_type;
  PyObject *float32, *float16, *bfloat16, *float64, *complex64, *complex128, *int32;
  PyObject *empty_like, *empty_strided;
  PyObject* empty_strided_cuda;  // of torch._C._dynamo.guards, what compiled code calls; null where it is not
  DirectCall empty_strided_cuda_direct;
  PyObject* current_device;  // torch._C._cuda_getDevice; null in a torch without CUDA
  DirectCall current_device_direct;
  PyObject* raw_stream;               // torch._C._cuda_getCurrentRawStream; null in a torch without CUDA
  const dlpack::ExchangeApi* dlpack;  // null before torch 2.10
};

// object.name() without arguments, of a tensor.
Ref call_method(const Torch& torch, PyObject* object, Name name);
// function(*arguments), arguments a tuple; `direct` is that function's.
Ref call_function(PyObject* function, const DirectCall& direct, PyObject* arguments);

// torch's current device, which is not always the driver's; -1 where it is not known.
int current_device(const Torch& torch);

// Null with a Python error set where torch cannot be imported.
const Torch* torch_objects();

}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stdint.h>

#include "kernels/binding/objects.h"

// The part of DLPack 1.3's C exchange API that the module reads (dmlc/dlpack, include/dlpack/dlpack.h). Its
// allocator is left out on purpose: memory from there is a foreign blob to torch, for which record_stream
// does nothing.
namespace scankit::dlpack {

inline constexpr int32_t kCpu = 1, kCuda = 2;
inline constexpr uint8_t kInt = 0, kFloat = 2, kBfloat = 4, kComplex = 5;

struct Tensor {
  void* data;
  int32_t device_type, device_id;
  int32_t ndim;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;
  uint64_t byte_offset;
};

struct ExchangeApiHeader {
  uint32_t major, minor;
  ExchangeApiHeader* older;
};
// DLPackExchangeAPI. The functions take and return Python objects as void*; 0 means success.
struct ExchangeApi {
  ExchangeApiHeader header;
  void *allocate, *managed_from_object, *managed_to_object;  // not used
  int (*tensor_from_object)(void* object, Tensor* borrowed);
  int (*current_stream)(int32_t device_type, int32_t device_id, void** stream);
};

}  // namespace scankit::dlpack

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
  PyObject* (*vectorcall_method)(PyObject*, PyObject* const*, size_t, PyObject*);  // Python's; null in 3.8
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

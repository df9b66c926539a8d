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
  kNameCount
};

// The objects of the user's torch, looked up once, at the first call; kept for good.
struct Torch {
  PyObject* names[kNameCount];
  PyObject *tensor_type, *parameter_type;
  PyObject *float32, *float16, *bfloat16, *float64, *complex64, *complex128, *int32;
  PyObject *empty_like, *empty_strided;
  PyObject* empty_strided_cuda;  // of torch._C._dynamo.guards, what compiled code calls; null where it is not
  PyObject* raw_stream;          // torch._C._cuda_getCurrentRawStream; null in a torch without CUDA
  const dlpack::ExchangeApi* dlpack;  // null before torch 2.10
};

// Null with a Python error set where torch cannot be imported.
const Torch* torch_objects();

}  // namespace scankit

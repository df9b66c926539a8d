// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stdint.h>

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

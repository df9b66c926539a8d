// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stddef.h>

#include "kernels/common/driver_plan.h"

// The CUDA driver's functions, by dlopen: a module that linked libcuda.so.1 could not be imported without a
// driver. Types and values are those of cuda.h, which is not at hand where the module is built.
namespace scankit::device {

using CudaResult = int;  // CUresult; 0 is CUDA_SUCCESS
using CudaDevice = int;
using CudaHandle =
    struct CudaHandleOpaque*;  // CUcontext, CUmodule, CUlibrary, CUkernel, CUfunction, CUstream

inline constexpr CudaResult kCudaNotInitialized = 3;
inline constexpr CudaResult kCudaUnsupportedPtx = 222;

inline constexpr int kAttributeMultiprocessors = 16;
inline constexpr int kAttributeMajor = 75;
inline constexpr int kAttributeMinor = 76;
inline constexpr int kAttributeSharedPerMultiprocessor = 81;
inline constexpr int kAttributeSharedPerBlockOptin = 97;
inline constexpr int kFunctionStaticShared = 1;
inline constexpr int kFunctionMaxDynamicShared = 8;

struct DriverApi {
  CudaResult (*init)(unsigned flags);
  CudaResult (*driver_version)(int*);
  CudaResult (*device_get)(CudaDevice*, int ordinal);
  CudaResult (*device_attribute)(int*, int attribute, CudaDevice);
  CudaResult (*primary_retain)(CudaHandle*, CudaDevice);
  CudaResult (*context_device)(CudaDevice*);
  CudaResult (*context_push)(CudaHandle);
  CudaResult (*context_pop)(CudaHandle*);
  CudaResult (*module_load)(CudaHandle*, const void* image);
  CudaResult (*module_function)(CudaHandle*, CudaHandle module, const char* name);
  CudaResult (*function_read)(int*, int attribute, CudaHandle function);
  CudaResult (*function_attribute)(CudaHandle function, int attribute, int value);
  CudaResult (*launch)(CudaHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                       CudaHandle stream, void** parameters, void** extra);
  CudaResult (*error_name)(CudaResult, const char**);
  CudaResult (*error_string)(CudaResult, const char**);
  // CUDA 12.0 on; null before.
  CudaResult (*library_load)(CudaHandle*, const void* image, int* jit_options, void** jit_values,
                             unsigned jit_count, int* options, void** values, unsigned count);
  CudaResult (*library_kernel)(CudaHandle*, CudaHandle library, const char* name);
  CudaResult (*kernel_function)(CudaHandle*, CudaHandle kernel);
};

// Null, with the message, where there is no usable driver. The library stays loaded.
const DriverApi* driver_api(Message* message);

// "what: CUDA_ERROR_X (700): text"; always false.
bool driver_failed(const DriverApi& api, CudaResult result, const char* what, Message* message);

// Device state of a module that launches through the CUDA driver: one primary context and one set of loaded
// kernels per (device, process). Nothing here touches the driver before device_prepare. Callers hold the GIL
// or their own lock.

// At import. `image_fd` is the module's own file, opened then and kept: a file replaced later holds another
// build's images. It is never closed here. -1: the module has no images (message at first use).
void device_register(int image_fd, const KernelName* kernels, int kernel_count);

// Loads libcuda.so.1, retains the device's primary context, checks and loads every image for it. Cheap (a
// table look-up) from the second call on. False: `message` says what, where and what next.
bool device_prepare(int device, DeviceFacts* facts, Message* message);

// Makes the device's primary context current unless one of the same device is (a green context stays). Needs
// a successful device_prepare(device). Enter before allocating outputs and launching; leave afterwards on
// every path.
struct Guard {
  bool pushed = false;
};
bool guard_enter(int device, Guard* guard, Message* message);
void guard_leave(Guard* guard);

// Launches the plan on `stream` (a CUstream; null is the legacy default stream). Inside a guard. Fills the
// workspace pointers itself.
bool device_run(Plan* plan, int device, void* stream, void* workspace, Message* message);

}  // namespace scankit::device

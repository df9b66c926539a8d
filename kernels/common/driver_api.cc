// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/driver_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

// Finds the driver's functions with dlsym(). The names are those that cuda.h maps to with its macros: the
// current version of a function often has a suffix ("_v2").
namespace scankit::device {
namespace {

template <class Function>
bool find(void* library, const char* name, Function* function) {
  void* address = dlsym(library, name);
  memcpy(function, &address, sizeof address);
  return address != nullptr;
}

// Returns the first name that the library lacks, or null. Without the suffix, push and pop would be the
// functions of CUDA 3.
const char* find_all(void* library, DriverApi* api) {
#define SCANKIT_FIND(member, name) \
  if (!find(library, name, &api->member)) return name
  SCANKIT_FIND(init, "cuInit");
  SCANKIT_FIND(driver_version, "cuDriverGetVersion");
  SCANKIT_FIND(device_get, "cuDeviceGet");
  SCANKIT_FIND(device_attribute, "cuDeviceGetAttribute");
  SCANKIT_FIND(primary_retain, "cuDevicePrimaryCtxRetain");
  SCANKIT_FIND(context_device, "cuCtxGetDevice");
  SCANKIT_FIND(context_push, "cuCtxPushCurrent_v2");
  SCANKIT_FIND(context_pop, "cuCtxPopCurrent_v2");
  SCANKIT_FIND(module_load, "cuModuleLoadData");
  SCANKIT_FIND(module_function, "cuModuleGetFunction");
  SCANKIT_FIND(function_read, "cuFuncGetAttribute");
  SCANKIT_FIND(function_attribute, "cuFuncSetAttribute");
  SCANKIT_FIND(launch, "cuLaunchKernel");
  SCANKIT_FIND(error_name, "cuGetErrorName");
  SCANKIT_FIND(error_string, "cuGetErrorString");
#undef SCANKIT_FIND
  if (!find(library, "cuLibraryLoadData", &api->library_load) ||
      !find(library, "cuLibraryGetKernel", &api->library_kernel) ||
      !find(library, "cuKernelGetFunction", &api->kernel_function))
    api->library_load = nullptr;
  return nullptr;
}

DriverApi g_api;
bool g_found = false;

}  // namespace

// A failure is not remembered, so that a later call tries again.
const DriverApi* driver_api(Message* message) {
  if (g_found) return &g_api;
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    snprintf(message->text, sizeof message->text,
             "cannot load the NVIDIA driver (%s): a CUDA tensor needs libcuda.so.1; run scankit doctor",
             why != nullptr ? why : "dlopen gave no reason");
    return nullptr;
  }
  if (const char* missing = find_all(library, &g_api)) {
    snprintf(message->text, sizeof message->text,
             "the NVIDIA driver's libcuda.so.1 lacks %s: update the driver", missing);
    dlclose(library);
    return nullptr;
  }
  g_found = true;
  return &g_api;
}

bool driver_failed(const DriverApi& api, CudaResult result, const char* what, Message* message) {
  const char *name = nullptr, *text = nullptr;
  if (api.error_name(result, &name) != 0 || name == nullptr) name = "unknown error";
  if (api.error_string(result, &text) != 0 || text == nullptr) text = "the driver gives no text";
  snprintf(message->text, sizeof message->text, "%s: %s (%d): %s", what, name, result, text);
  return false;
}

}  // namespace scankit::device

// SPDX-License-Identifier: Apache-2.0
// A libcuda.so.1 for a test on a machine without a GPU: one device of sm_90 that takes every image, and
// writes a line into $DRIVER_STUB_LOG for each. What it is given by the real module is what the real driver
// would be given.
#include <stdio.h>
#include <stdlib.h>

static int loaded(const void* image) {
  const char* path = getenv("DRIVER_STUB_LOG");
  FILE* log = path != NULL ? fopen(path, "a") : NULL;
  if (log == NULL) return 999;
  fprintf(log, "%02x\n", *(const unsigned char*)image);
  return fclose(log) == 0 ? 0 : 999;
}

static int token;

int cuInit(unsigned flags) { return (int)flags; }
int cuDriverGetVersion(int* version) { return *version = 13000, 0; }
int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, ordinal == 0 ? 0 : 101; }
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  (void)device;
  *value = attribute == 75 ? 9 : attribute == 76 ? 0 : attribute == 16 ? 132 : 200000;
  return 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) { return *context = &token, device; }
int cuCtxGetDevice(int* device) { return *device = 0, 0; }
int cuCtxPushCurrent_v2(void* context) { return context == NULL; }
int cuCtxPopCurrent_v2(void** context) { return *context = &token, 0; }
int cuModuleLoadData(void** module, const void* image) { return *module = &token, loaded(image); }
int cuModuleGetFunction(void** function, void* module, const char* name) {
  return *function = module, name == NULL;
}
int cuFuncGetAttribute(int* value, int attribute, void* function) {
  return *value = 0, attribute < 0 || function == NULL;
}
int cuFuncSetAttribute(void* function, int attribute, int value) {
  return function == NULL || attribute < 0 || value < 0;
}
int cuLaunchKernel(void) { return 0; }
int cuLaunchKernelEx(void) { return 0; }
int cuGetErrorName(int code, const char** name) { return *name = "CUDA_ERROR_STUB", code < 0; }
int cuGetErrorString(int code, const char** text) { return *text = "of the stub", code < 0; }

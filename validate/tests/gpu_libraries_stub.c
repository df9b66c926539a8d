// SPDX-License-Identifier: Apache-2.0
// libcuda.so.1 and libnvidia-ml.so.1 at once, of a GPU that is held back by heat and has three processes:
// what the harness asks of both (harness/gpu_state.py), for a test on a machine without a GPU.
#include <string.h>

int cuInit(unsigned flags) { return (int)flags; }
int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, ordinal != 0; }
int cuDeviceGetPCIBusId(char* text, int size, int device) {
  return strncpy(text, "0000:1B:00.0", (unsigned)size), device;
}

struct process {
  unsigned pid;
  unsigned long long memory;
  unsigned gpu, compute;
};
static int token;
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus, void** device) {
  return *device = &token, strcmp(bus, "0000:1B:00.0") != 0;
}
int nvmlDeviceGetClockInfo(void* device, unsigned kind, unsigned* value) {
  return *value = kind == 1 ? 1200 : 2619, device != &token;
}
int nvmlDeviceGetMaxClockInfo(void* device, unsigned kind, unsigned* value) {
  return *value = 1980, kind != 1 || device != &token;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(void* device, unsigned long long* value) {
  return *value = 0x40, device != &token;
}
int nvmlDeviceGetTemperature(void* device, unsigned sensor, unsigned* value) {
  return *value = 91, sensor != 0 || device != &token;
}
int nvmlDeviceGetPowerUsage(void* device, unsigned* value) {
  return *value = 0, device == &token ? 3 : 1;
}  // not supported
int nvmlDeviceGetComputeRunningProcesses_v3(void* device, unsigned* count, struct process* seen) {
  for (unsigned i = 0; i < 3; ++i) seen[i] = (struct process){100 + i, 1u << 20, ~0u, ~0u};
  return *count = 3, device != &token;
}

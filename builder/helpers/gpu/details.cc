// SPDX-License-Identifier: Apache-2.0
// `scankit-gpu nvml-details` and `scankit-gpu cuda-details`: what a GPU has and how it is set, one record a GPU,
// "details<TAB>pci=ADDRESS<TAB>key=number...". The keys are those of doctor/model/gpu_details.def, numbers are
// whole and in its units. What a driver does not know or tell is left out. The two verbs are processes of their
// own: cuInit() may hang where NVML answers.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "builder/helpers/gpu/library.h"

namespace scankit_gpu {
namespace {

using Device = struct NvmlDevice*;
void* g_nvml = nullptr;

void put(const char* key, long long value) { printf("\t%s=%lld", key, value); }

// The functions are looked up one by one: an older driver lacks some, and says the rest.
template <class Function>
Function* function_of(const char* name) {
  Function* function = nullptr;
  bind(g_nvml, name, &function);
  return function;
}

// Functions of the form nvmlReturn_t f(nvmlDevice_t, unsigned*): `divide` makes its unit ours.
void put_one(Device device, const char* key, const char* name, unsigned divide = 1) {
  unsigned value = 0;
  const auto f = function_of<int(Device, unsigned*)>(name);
  if (f != nullptr && f(device, &value) == 0) put(key, value / divide);
}

// nvmlReturn_t f(nvmlDevice_t, enum, unsigned*).
void put_of(Device device, const char* key, const char* name, int which) {
  unsigned value = 0;
  const auto f = function_of<int(Device, int, unsigned*)>(name);
  if (f != nullptr && f(device, which, &value) == 0) put(key, value);
}

// The current one of a pair "current, pending".
void put_mode(Device device, const char* key, const char* name) {
  unsigned current = 0, pending = 0;
  const auto f = function_of<int(Device, unsigned*, unsigned*)>(name);
  if (f != nullptr && f(device, &current, &pending) == 0) put(key, current);
}

// Counted since the GPU was made (NVML_AGGREGATE_ECC is 1). Error type 0 is corrected, 1 is not.
void put_memory_errors(Device device) {
  const auto errors = function_of<int(Device, int, int, unsigned long long*)>("nvmlDeviceGetTotalEccErrors");
  unsigned long long count = 0;
  if (errors != nullptr && errors(device, 0, 1, &count) == 0) put("ecc_corrected", count);
  if (errors != nullptr && errors(device, 1, 1, &count) == 0) put("ecc_uncorrected", count);
  const auto rows =
      function_of<int(Device, unsigned*, unsigned*, unsigned*, unsigned*)>("nvmlDeviceGetRemappedRows");
  unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0;
  if (rows == nullptr || rows(device, &corrected, &uncorrected, &pending, &failed) != 0) return;
  put("remapped_rows", corrected + uncorrected);
  put("remapping_pending", pending);
  put("remapping_failed", failed);
}

void put_clocks(Device device) {
  constexpr int kMultiprocessors = 1, kMemory = 2;  // nvmlClockType_t
  put_of(device, "core_clock", "nvmlDeviceGetClockInfo", kMultiprocessors);
  put_of(device, "core_clock_max", "nvmlDeviceGetMaxClockInfo", kMultiprocessors);
  put_of(device, "memory_clock", "nvmlDeviceGetClockInfo", kMemory);
  put_of(device, "memory_clock_max", "nvmlDeviceGetMaxClockInfo", kMemory);
  unsigned long long reasons = 0;
  const auto f = function_of<int(Device, unsigned long long*)>("nvmlDeviceGetCurrentClocksThrottleReasons");
  if (f != nullptr && f(device, &reasons) == 0) put("clocks_limited_by", reasons);
}

// Links beyond those that a GPU has answer "invalid argument" or "not supported".
void put_links(Device device) {
  const auto state = function_of<int(Device, unsigned, unsigned*)>("nvmlDeviceGetNvLinkState");
  unsigned active = 0, known = 0;
  for (unsigned link = 0; state != nullptr && link < 18; ++link) {  // NVML_NVLINK_MAX_LINKS
    unsigned on = 0;
    if (state(device, link, &on) != 0) continue;
    ++known;
    active += on;
  }
  if (known > 0) put("nvlinks", known);
  if (known > 0) put("nvlinks_active", active);
}

// How many other GPUs it reads directly (NVML_P2P_CAPS_INDEX_READ is 0, NVML_P2P_STATUS_OK is 0).
void put_peers(Device device, unsigned index, unsigned count) {
  const auto handle = function_of<int(unsigned, Device*)>("nvmlDeviceGetHandleByIndex_v2");
  const auto peer = function_of<int(Device, Device, int, int*)>("nvmlDeviceGetP2PStatus");
  unsigned peers = 0;
  for (unsigned i = 0; handle != nullptr && peer != nullptr && i < count; ++i) {
    Device other = nullptr;
    int status = 1;
    if (i != index && handle(i, &other) == 0 && peer(device, other, 0, &status) == 0 && status == 0) ++peers;
  }
  if (peer != nullptr && count > 1) put("peers", peers);
}

void put_power(Device device) {
  put_one(device, "power", "nvmlDeviceGetPowerUsage", 1000);  // from milliwatts
  put_one(device, "power_limit", "nvmlDeviceGetEnforcedPowerLimit", 1000);
  put_one(device, "power_limit_default", "nvmlDeviceGetPowerManagementDefaultLimit", 1000);
  put_of(device, "temperature", "nvmlDeviceGetTemperature", 0);
  put_of(device, "temperature_slowdown", "nvmlDeviceGetTemperatureThreshold", 1);
}

void put_nvml(Device device, unsigned index, unsigned count) {
  put_one(device, "memory_bus", "nvmlDeviceGetMemoryBusWidth");
  put_clocks(device);
  put_mode(device, "ecc", "nvmlDeviceGetEccMode");
  put_memory_errors(device);
  put_mode(device, "mig", "nvmlDeviceGetMigMode");
  put_one(device, "compute_mode", "nvmlDeviceGetComputeMode");
  put_one(device, "persistence", "nvmlDeviceGetPersistenceMode");
  put_power(device);
  put_one(device, "pcie_generation", "nvmlDeviceGetCurrPcieLinkGeneration");
  put_one(device, "pcie_generation_max", "nvmlDeviceGetMaxPcieLinkGeneration");
  put_one(device, "pcie_width", "nvmlDeviceGetCurrPcieLinkWidth");
  put_one(device, "pcie_width_max", "nvmlDeviceGetMaxPcieLinkWidth");
  put_links(device);
  put_peers(device, index, count);
}

struct Attribute {
  const char* key;
  int number;  // CUdevice_attribute, cuda.h
  int divide;  // clocks are told in kHz
};
constexpr Attribute kAttributes[] = {
    {"multiprocessors", 16, 1},
    {"threads_per_multiprocessor", 39, 1},
    {"warp_size", 10, 1},
    {"registers_per_block", 12, 1},
    {"registers_per_multiprocessor", 82, 1},
    {"shared_per_block", 97, 1},
    {"shared_per_multiprocessor", 81, 1},
    {"l2", 38, 1},
    {"memory_bus", 37, 1},
    {"core_clock_max", 13, 1000},
    {"memory_clock_max", 36, 1000},
    {"integrated", 18, 1},
};

}  // namespace

int run_nvml_details(int argc, char** argv) {
  (void)argv;
  if (argc != 0) return kUsage;
  g_nvml = load_nvml();
  if (g_nvml == nullptr) return kAbsent;
  const auto init = function_of<int()>("nvmlInit_v2");
  const auto counted = function_of<int(unsigned*)>("nvmlDeviceGetCount_v2");
  const auto handle = function_of<int(unsigned, Device*)>("nvmlDeviceGetHandleByIndex_v2");
  // nvmlPciInfo_t of _v3: 16 bytes, five numbers, then the address.
  struct Pci {
    char legacy[16];
    unsigned numbers[5];
    char address[32];
  };
  const auto pci = function_of<int(Device, Pci*)>("nvmlDeviceGetPciInfo_v3");
  unsigned count = 0;
  if (init == nullptr || counted == nullptr || handle == nullptr || pci == nullptr || init() != 0 ||
      counted(&count) != 0)
    return kFailed;
  for (unsigned i = 0; i < count; ++i) {
    Device device = nullptr;
    Pci where = {};
    if (handle(i, &device) != 0 || pci(device, &where) != 0) continue;
    printf("details\tpci=%.31s", where.address);
    put_nvml(device, i, count);
    printf("\n");
  }
  return kOk;
}

int run_cuda_details(int argc, char** argv) {
  (void)argv;
  if (argc != 0) return kUsage;
  // They would hide GPUs, and one that is hidden has a capacity, too.
  unsetenv("CUDA_VISIBLE_DEVICES");
  unsetenv("NVIDIA_VISIBLE_DEVICES");
  void* cuda = load_library("libcuda.so.1");
  if (cuda == nullptr) cuda = load_library("/usr/lib/wsl/lib/libcuda.so.1");
  if (cuda == nullptr) return kAbsent;
  int (*init)(unsigned) = nullptr;
  int (*counted)(int*) = nullptr;
  int (*get)(int*, int) = nullptr;
  int (*attribute)(int*, int, int) = nullptr;
  int (*address)(char*, int, int) = nullptr;
  if (!bind(cuda, "cuInit", &init) || !bind(cuda, "cuDeviceGetCount", &counted) ||
      !bind(cuda, "cuDeviceGet", &get) || !bind(cuda, "cuDeviceGetAttribute", &attribute) ||
      !bind(cuda, "cuDeviceGetPCIBusId", &address))
    return kFailed;
  int count = 0;
  if (init(0) != 0 || counted(&count) != 0) return kFailed;
  for (int i = 0; i < count; ++i) {
    int device = 0;
    char where[32] = "";
    if (get(&device, i) != 0 || address(where, sizeof(where), device) != 0) continue;
    printf("details\tpci=%s", where);
    for (const Attribute& one : kAttributes) {
      int value = 0;
      if (attribute(&value, one.number, device) == 0) put(one.key, value / one.divide);
    }
    printf("\n");
  }
  return kOk;
}

}  // namespace scankit_gpu

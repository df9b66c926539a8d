// SPDX-License-Identifier: Apache-2.0
// `scankit-gpu nvml`: the driver and its GPUs as NVML tells them.
#include <stdio.h>

#include "builder/helpers/gpu/library.h"

namespace scankit_gpu {
namespace {

// From the NVML API reference; layouts are those of the versioned functions named below.
using Device = struct NvmlDevice*;
struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
struct MemoryInfo {
  unsigned long long total, free, used;
};

// Filled by bind_all(). The int results are nvmlReturn_t, where 0 is NVML_SUCCESS.
struct Nvml {
  int (*init)();
  int (*shutdown)();
  const char* (*error_string)(int);
  int (*driver_version)(char*, unsigned);
  int (*cuda_version)(int*);
  int (*count)(unsigned*);
  int (*device)(unsigned, Device*);
  int (*name)(Device, char*, unsigned);
  int (*uuid)(Device, char*, unsigned);
  int (*pci)(Device, PciInfo*);
  int (*capability)(Device, int*, int*);
  int (*memory)(Device, MemoryInfo*);
};

// The loader's own search, then where WSL and some containers keep it out of the cache.
constexpr const char* kPlaces[] = {"libnvidia-ml.so.1", "/usr/lib/wsl/lib/libnvidia-ml.so.1",
                                   "/usr/local/nvidia/lib64/libnvidia-ml.so.1",
                                   "/run/opengl-driver/lib/libnvidia-ml.so.1"};

// nvml.h maps the plain names to the versioned ones by macros; without the header the exported names are
// spelled out. All of them must exist: an NVML that lacks one is reported as a failure, not used in part.
bool bind_all(void* library, Nvml* nvml) {
  return bind(library, "nvmlInit_v2", &nvml->init) && bind(library, "nvmlShutdown", &nvml->shutdown) &&
         bind(library, "nvmlErrorString", &nvml->error_string) &&
         bind(library, "nvmlSystemGetDriverVersion", &nvml->driver_version) &&
         bind(library, "nvmlSystemGetCudaDriverVersion_v2", &nvml->cuda_version) &&
         bind(library, "nvmlDeviceGetCount_v2", &nvml->count) &&
         bind(library, "nvmlDeviceGetHandleByIndex_v2", &nvml->device) &&
         bind(library, "nvmlDeviceGetName", &nvml->name) && bind(library, "nvmlDeviceGetUUID", &nvml->uuid) &&
         bind(library, "nvmlDeviceGetPciInfo_v3", &nvml->pci) &&
         bind(library, "nvmlDeviceGetCudaComputeCapability", &nvml->capability) &&
         bind(library, "nvmlDeviceGetMemoryInfo", &nvml->memory);
}

// One record is one line: a name that holds a tab or a newline would forge another.
void make_printable(char* text) {
  for (; *text != 0; ++text)
    if (static_cast<unsigned char>(*text) < 0x20 || *text == 0x7f) *text = ' ';
}

// Prints one "gpu" record; doctor/host/embedded_program.h names its fields. `memory` is in bytes. nvml.h asks
// for at most 96 bytes for a name or a UUID.
int print_device(const Nvml& nvml, unsigned index) {
  Device device = nullptr;
  char name[128] = "", uuid[128] = "";
  PciInfo pci = {};
  MemoryInfo memory = {};
  int major = 0, minor = 0;
  int rc = nvml.device(index, &device);
  if (rc == 0) rc = nvml.name(device, name, sizeof(name));
  if (rc == 0) rc = nvml.uuid(device, uuid, sizeof(uuid));
  if (rc == 0) rc = nvml.pci(device, &pci);
  if (rc == 0) rc = nvml.capability(device, &major, &minor);
  if (rc != 0) {
    char number[16];
    snprintf(number, sizeof(number), "%u", index);
    report_error("NVML: device {}: {}", number, nvml.error_string(rc));
    return kFailed;
  }
  // Devices that share the host's memory do not tell theirs: 0 is "unknown".
  if (nvml.memory(device, &memory) != 0) memory.total = 0;
  make_printable(name);
  make_printable(uuid);
  make_printable(pci.bus_id);
  printf("gpu\tindex=%u\tname=%s\tpci=%s\tuuid=%s\tsm=%d%d\tmemory=%llu\n", index, name, pci.bus_id, uuid,
         major, minor, memory.total);
  return kOk;
}

// Prints the driver and then each GPU. A device that fails does not hide the others: its error goes to
// stderr, and the exit status becomes kFailed. NVML's CUDA version is 1000 * major + 10 * minor.
int print_all(const Nvml& nvml) {
  char driver[96] = "";
  int cuda = 0;
  unsigned count = 0;
  int rc = nvml.driver_version(driver, sizeof(driver));
  if (rc == 0) rc = nvml.cuda_version(&cuda);
  if (rc == 0) rc = nvml.count(&count);
  if (rc != 0) {
    report_error("NVML: {}", nvml.error_string(rc));
    return kFailed;
  }
  make_printable(driver);
  printf("driver\tversion=%s\tcuda=%d.%d\n", driver, cuda / 1000, cuda % 1000 / 10);
  int status = kOk;
  for (unsigned i = 0; i < count; ++i)
    if (print_device(nvml, i) != kOk) status = kFailed;
  return status;
}

}  // namespace

void* load_nvml() {
  void* library = nullptr;
  for (const char* place : kPlaces)
    if (library == nullptr) library = load_library(place);
  return library;
}

int run_nvml(int argc, char** argv) {
  (void)argv;
  if (argc != 0) return kUsage;
  void* library = load_nvml();
  if (library == nullptr) {
    report_error("libnvidia-ml.so.1 was not found: {}", load_error());
    return kAbsent;
  }
  Nvml nvml = {};
  if (!bind_all(library, &nvml)) {
    report_error("libnvidia-ml.so.1 lacks a function: {}", load_error());
    return kFailed;
  }
  if (const int rc = nvml.init(); rc != 0) {
    report_error("nvmlInit: {}", nvml.error_string(rc));
    return kFailed;
  }
  const int status = print_all(nvml);
  nvml.shutdown();
  return status;
}

}  // namespace scankit_gpu

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

// Facts about the machine, not about a Python environment. They come from files; only gcc is started, for
// its version. A fact that cannot be read says why. What a system that is not running cannot tell (CPU,
// memory, GPUs) is Absent, not Failed.

namespace scankit::probes {

Probed<Os> probe_os(const Host& host);
// "36.4.3" of Jetson Linux; "" elsewhere, on a server of the same processor too.
std::string jetson_release(const Host& host);
// The version is the newest GLIBC_ version that libc.so.6 defines, which is what modules are compared with.
// musl is recognised by its loader and has no version here.
Probed<LibC> probe_libc(const Host& host);
// The libstdc++ that the loader would give a program without search paths of its own.
Probed<LibStdCxx> probe_libstdcxx(const Host& host);
// From /proc/cpuinfo. `model` and `features` are empty on aarch64, whose cpuinfo names neither in this way.
Probed<Cpu> probe_cpu(const Host& host);
// Bytes. The limit of the control group is set only where it is below the memory of the machine.
Probed<Memory> probe_memory(const Host& host);
// Free space of the file system that holds `path`.
Probed<Disk> probe_disk(const Host& host, const std::string& path);
// Order of evidence: /sys/module/nvidia/version,
// /proc/driver/nvidia/version, the version in libcuda's file name.
Probed<Driver> probe_driver(const Host& host);
// PCI devices of vendor 10de, class display, with the table of knowledge/gpus.yaml; /proc/driver/nvidia for
// the names.
Probed<std::vector<Gpu>> probe_gpus(const Host& host);
// NVML writes "00000000:0F:00.0", sysfs "0000:0f:00.0".
bool is_same_pci_device(const std::string& nvml, const std::string& sysfs);
// A "details" record of the helper into gpu.details: keys of gpu_details.def with whole numbers, nothing else.
void take_gpu_details(const std::map<std::string, std::string>& fields, Gpu& gpu);
// Each nvcc once, in the order of CUDA_HOME, CUDA_PATH, CONDA_PREFIX, PATH, /usr/local. `version` is ""
// where the toolkit has no cuda.h.
Probed<std::vector<Toolkit>> probe_toolkits(const Host& host);
// Each g++ and clang++ of CXX, CUDAHOSTCXX and PATH once.
Probed<std::vector<Compiler>> probe_compilers(const Host& host);
// The kind goes by the name of the file and of what it links to. `version` is "" where it cannot be told.
// Starts gcc on a live system, which is why build_tools.cc calls may_ask() first.
Compiler describe_compiler(const Host& host, const std::string& path);

// The user-space half of the driver: which libcuda.so.1 and libnvidia-ml.so.1 the loader would take, of what
// kind they are, and what lies beside them. Fills the library fields of `driver`.
void find_driver_libraries(const Host& host, Driver& driver);
// MIG instances that this system may use: /proc/driver/nvidia/capabilities/gpuN/mig/giM/ciK.
void find_mig_instances(const Host& host, Driver& driver);

// The control groups that bound the memory of this process (cgroups(7)), of version 1 and 2.

struct ControlGroup {
  std::string folder;  // below /sys/fs/cgroup
  bool v2 = false;
};
// This process's own group and all above it, up to the root: each binds. In a container the root of the files
// is often the group itself.
void for_each_control_group(const Host& host, const std::function<void(const ControlGroup&)>& visit);

// Its limit in bytes. "max" is no number; v1 writes none as one beyond any machine.
std::optional<std::uint64_t> limit_of(const Host& host, const ControlGroup& group);

// The number that a text begins with.
std::optional<std::uint64_t> leading_number(std::string_view text);

}  // namespace scankit::probes

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

// Facts about the machine, not about a Python environment. Files only; a fact that cannot be read says why.

namespace scankit {

Probed<Os> probe_os(const Host& host);
Probed<LibC> probe_libc(const Host& host);
// The libstdc++ that the loader would give a program without search paths of its own.
Probed<LibStdCxx> probe_libstdcxx(const Host& host);
Probed<Cpu> probe_cpu(const Host& host);
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
Probed<std::vector<Toolkit>> probe_toolkits(const Host& host);
Probed<std::vector<Compiler>> probe_compilers(const Host& host);
Compiler describe_compiler(const Host& host, const std::string& path);

// The user-space half of the driver: which libcuda.so.1 and libnvidia-ml.so.1 the loader would take, of what
// kind they are, and what lies beside them. Fills the library fields of `driver`.
void find_driver_libraries(const Host& host, Driver& driver);
// MIG instances that this system may use: /proc/driver/nvidia/capabilities/gpuN/mig/giM/ciK.
void find_mig_instances(const Host& host, Driver& driver);

}  // namespace scankit

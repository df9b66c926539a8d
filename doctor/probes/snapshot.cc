// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/snapshot.h"

#include <algorithm>
#include <sstream>

#include "doctor/base/files.h"
#include "doctor/base/tool_version.h"
#include "doctor/host/gpu_helper.h"
#include "doctor/probes/distributions.h"
#include "doctor/probes/extensions.h"
#include "doctor/probes/importers.h"
#include "doctor/probes/python.h"
#include "doctor/probes/system.h"
#include "doctor/probes/torch.h"

namespace scankit {
namespace {

// Variables that change what Python, the loader or CUDA do. No others: a snapshot travels.
constexpr const char* kVariables[] = {
    "CONDA_PREFIX", "CUDA_HOME",        "CUDA_PATH",  "CUDA_VISIBLE_DEVICES", "LD_LIBRARY_PATH", "LD_PRELOAD",
    "PYTHONHOME",   "PYTHONNOUSERSITE", "PYTHONPATH", "TORCH_CUDA_ARCH_LIST", "VIRTUAL_ENV"};

// The helper's lines: `gpu index=0 name=NVIDIA%20H200 pci=00000000:0F:00.0 uuid=... sm=90 memory=...`
std::string field(const std::string& line, const std::string& key) {
  const auto at = line.find(" " + key + "=");
  if (at == std::string::npos) return "";
  const auto start = at + key.size() + 2;
  return line.substr(start, std::min(line.find(' ', start), line.size()) - start);
}

std::string unescape(const std::string& text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      plain += static_cast<char>(std::stoi(text.substr(i + 1, 2), nullptr, 16));
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// NVML knows more than the PCI bus: the capability of unknown ids, memory, the driver's CUDA version.
void ask_nvml(Snapshot& snapshot) {
  if (!snapshot.driver.present()) return;
  const auto answer = run_gpu_helper({"nvml"});
  if (!answer || !answer->ok()) {
    snapshot.driver.note = answer ? "NVML did not answer: " + answer->err.substr(0, answer->err.find('\n'))
                                  : answer.error().message;
    return;
  }
  std::vector<Gpu> gpus;
  std::istringstream lines(answer->out);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("driver ")) snapshot.driver.value.cuda_version = field(line, "cuda");
    if (!line.starts_with("gpu ")) continue;
    Gpu gpu;
    gpu.index = static_cast<unsigned>(gpus.size());
    gpu.name = unescape(field(line, "name"));
    gpu.pci_address = field(line, "pci");
    gpu.uuid = field(line, "uuid");
    gpu.sm = field(line, "sm");
    gpu.sm_source = "nvml";
    gpu.memory = std::strtoull(field(line, "memory").c_str(), nullptr, 10);
    for (const Gpu& seen : snapshot.gpus.value)
      if (gpu.pci_address.ends_with(seen.pci_address)) gpu.pci_device = seen.pci_device;
    gpus.push_back(std::move(gpu));
  }
  if (!gpus.empty()) snapshot.gpus = Probed<std::vector<Gpu>>::of(std::move(gpus));
}

void probe_machine(const Host& host, const SnapshotRequest& request, Snapshot& snapshot) {
  snapshot.os = probe_os(host);
  snapshot.libc = probe_libc(host);
  snapshot.libstdcxx = probe_libstdcxx(host);
  snapshot.cpu = probe_cpu(host);
  snapshot.memory = probe_memory(host);
  snapshot.driver = probe_driver(host);
  snapshot.gpus = probe_gpus(host);
  if (request.ask_nvml && host.is_live()) ask_nvml(snapshot);
  snapshot.toolkits = probe_toolkits(host);
  snapshot.compilers = probe_compilers(host);
}

void probe_environment(const Host& host, const SnapshotRequest& request, Snapshot& snapshot) {
  snapshot.python = probe_python(host, request.python);
  if (!snapshot.python.present()) {
    const std::string why = "no Python to look at: " + snapshot.python.note;
    snapshot.distributions.note = snapshot.torch.note = snapshot.extensions.note = snapshot.importers.note =
        why;
    return;
  }
  const Python& python = snapshot.python.value;
  snapshot.disk = probe_disk(host, python.prefix);
  snapshot.distributions = probe_distributions(host, python);
  snapshot.torch = probe_torch(host, python, snapshot.distributions.value);
  snapshot.importers = probe_importers(host, python, snapshot.modules);
  std::vector<std::string> torch_missing;
  snapshot.extensions = probe_extensions(host, snapshot, snapshot.modules, torch_missing);
  snapshot.torch.value.missing_libraries = std::move(torch_missing);
}

}  // namespace

Snapshot take_snapshot(const Host& host, const SnapshotRequest& request) {
  const auto phase = [&](const char* name) {
    if (request.progress) request.progress(name);
  };
  Snapshot snapshot;
  snapshot.schema = 1;
  snapshot.tool_version = kToolVersion;
  snapshot.modules = request.modules.empty() ? kDefaultModules : request.modules;
  snapshot.modules_asked = request.modules;
  for (const char* name : kVariables)
    if (const auto value = host.env(name)) snapshot.environment[name] = *value;
  phase("machine");
  probe_machine(host, request, snapshot);
  phase("environment");
  probe_environment(host, request, snapshot);
  return snapshot;
}

}  // namespace scankit

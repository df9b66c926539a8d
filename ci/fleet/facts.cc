// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>

#include "ci/fleet/summary.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"

namespace scankit::fleet {
namespace {

using FactsByName = std::map<std::string, std::string>;

// Adds what `name` says of a probe: its value, that there is none, or that it could not be read.
template <class T, class Add>
void of_probe(const Probed<T>& probe, const std::string& name, FactsByName& facts, Add add) {
  if (probe.present())
    add(probe.value);
  else
    facts[name] = probe.state == ProbeState::Absent ? "none" : say("unknown: {}", probe.note);
}

std::string gpus_in_words(const std::vector<Gpu>& gpus) {
  std::map<std::string, std::size_t> kinds;
  for (const Gpu& gpu : gpus) ++kinds[gpu.name.empty() ? gpu.pci_device : gpu.name];
  std::string words;
  for (const auto& [kind, count] : kinds)
    words += (words.empty() ? "" : ", ") + std::to_string(count) + " x " + kind;
  return words;
}

void of_machine(const Snapshot& s, FactsByName& facts) {
  of_probe(s.os, "system", facts, [&](const Os& os) {
    facts["system"] = os.pretty_name.empty() ? os.id + " " + os.version_id : os.pretty_name;
    facts["kernel"] = os.kernel;
  });
  of_probe(s.libc, "libc", facts, [&](const LibC& libc) { facts["libc"] = libc.kind + " " + libc.version; });
  of_probe(s.libstdcxx, "libstdc++", facts,
           [&](const LibStdCxx& lib) { facts["libstdc++"] = "GLIBCXX_" + lib.glibcxx_max; });
  of_probe(s.cpu, "cpu", facts, [&](const Cpu& cpu) { facts["cpu"] = cpu.model; });
  of_probe(s.driver, "driver", facts, [&](const Driver& driver) {
    facts["driver"] = driver.version;
    facts["libcuda"] =
        driver.libcuda_version + (driver.libcuda_kind == "driver" ? "" : " " + driver.libcuda_kind);
    if (!driver.cuda_version.empty()) facts["cuda of the driver"] = driver.cuda_version;
    if (!driver.nvml_error.empty()) facts["nvml"] = driver.nvml_error;
  });
  of_probe(s.gpus, "gpus", facts, [&](const std::vector<Gpu>& gpus) { facts["gpus"] = gpus_in_words(gpus); });
  for (const auto& [name, value] : s.environment)
    if (!name.starts_with("scankit.")) facts["$" + name] = value;  // what was asked is no fact of the node
}

// The files under diagnosis, and the libraries that they are bound to: by what they hold, not by their names.
void of_files(const Snapshot& s, FactsByName& facts) {
  for (const std::string& module : s.modules) facts["module:" + module] = "not here";
  if (s.extensions.present())
    for (const Extension& extension : s.extensions.value) {
      if (!extension.selected || std::ranges::find(s.modules, extension.module) == s.modules.end()) continue;
      const std::string& path = extension.real_path.empty() ? extension.path : extension.real_path;
      const auto hash = sha256_file(path);
      facts["module:" + extension.module] = extension.path;
      facts["sha256:" + extension.module] = hash ? *hash : say("unknown: {}", hash.error().message);
    }
  if (!s.torch.present()) return;
  for (const Library& library : s.torch.value.libraries)
    if (!library.build_id.empty()) facts["build:" + path_basename(library.path)] = library.build_id;
  for (const NvidiaWheel& wheel : s.torch.value.nvidia_wheels) facts["wheel:" + wheel.name] = wheel.version;
}

}  // namespace

std::map<std::string, std::string> facts_of(const Snapshot& snapshot) {
  FactsByName facts;
  of_machine(snapshot, facts);
  of_probe(snapshot.python, "python", facts, [&](const Python& python) {
    facts["python"] = python.version;
    facts["python's file"] = python.requested.empty() ? python.executable : python.requested;
  });
  of_probe(snapshot.torch, "torch", facts, [&](const Torch& torch) {
    facts["torch"] = torch.version;
    facts["cuda of torch"] = torch.cuda.empty() ? "none" : torch.cuda;
    facts["torch's folder"] = torch.location;
    if (torch.distribution_version != torch.version) facts["torch's metadata"] = torch.distribution_version;
  });
  of_files(snapshot, facts);
  return facts;
}

}  // namespace scankit::fleet

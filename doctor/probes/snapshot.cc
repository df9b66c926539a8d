// SPDX-License-Identifier: Apache-2.0
// The order of the calls in this file is a contract: each probe gets the Snapshot as it is so far and reads
// fields that earlier probes have filled. Moving a call up makes its probe see empty facts, not an error.
#include "doctor/probes/snapshot.h"

#include <algorithm>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/tool_version.h"
#include "doctor/host/embedded_program.h"
#include "doctor/preflight/probes/sources.h"
#include "doctor/probes/extensions/extension_resolve.h"
#include "doctor/probes/extensions/extensions.h"
#include "doctor/probes/imports/importers.h"
#include "doctor/probes/machine/system.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/probes/packages/packages.h"
#include "doctor/probes/packages/repairs.h"
#include "doctor/probes/packages/requirements.h"
#include "doctor/probes/python/python.h"
#include "doctor/probes/target/target.h"

namespace scankit::probes {
namespace {

// Variables that change what Python, the loader or CUDA do. No others: a snapshot travels.
constexpr const char* kVariables[] = {
    "CONDA_PREFIX",     "CUDA_DEVICE_ORDER", "CUDA_HOME",      "CUDA_PATH",      "CUDA_VISIBLE_DEVICES",
    "LD_LIBRARY_PATH",  "LD_PRELOAD",        "GLIBC_TUNABLES", "PYTHON_GIL",     "PYTHONHOME",
    "PYTHONNOUSERSITE", "PYTHONPATH",        "PYTHONSAFEPATH", "PYTHONUSERBASE", "TORCH_CUDA_ARCH_LIST",
    "VIRTUAL_ENV"};

// "" where the helper did not print this key.
std::string field(const HelperRecord& record, const std::string& key) {
  const auto found = record.fields.find(key);
  return found == record.fields.end() ? "" : found->second;
}

// NVML knows more than the PCI bus: the capability of unknown ids, memory, the driver's CUDA version. Its
// list of GPUs replaces the one of the PCI bus. Where it does not answer, the list of the bus stays, and the
// driver remains Present with a note that gives the reason.
void ask_nvml(Snapshot& snapshot) {
  if (!snapshot.driver.present()) return;
  const auto answer = run_gpu_helper({"nvml"});
  if (!answer || !answer->ok()) {
    if (answer) snapshot.driver.value.nvml_error = answer->err.substr(0, answer->err.find('\n'));
    snapshot.driver.note = answer ? message("NVML did not answer: {}", snapshot.driver.value.nvml_error)
                                  : Message(answer.error().message);
    return;
  }
  std::vector<Gpu> gpus;
  for (const HelperRecord& record : parse_helper_records(answer->out)) {
    if (record.kind == "driver") {
      snapshot.driver.value.cuda_version = field(record, "cuda");
      // WSL: nothing but NVML tells the version, which is that of the Windows driver.
      if (snapshot.driver.value.version.empty()) snapshot.driver.value.version = field(record, "version");
    }
    if (record.kind != "gpu") continue;
    Gpu gpu;
    gpu.index = static_cast<unsigned>(gpus.size());
    gpu.name = field(record, "name");
    gpu.pci_address = field(record, "pci");
    gpu.uuid = field(record, "uuid");
    gpu.sm = field(record, "sm");
    gpu.sm_source = "nvml";
    gpu.memory = std::strtoull(field(record, "memory").c_str(), nullptr, 10);
    for (const Gpu& seen : snapshot.gpus.value)
      if (is_same_pci_device(gpu.pci_address, seen.pci_address)) gpu.pci_device = seen.pci_device;
    gpus.push_back(std::move(gpu));
  }
  if (!gpus.empty()) snapshot.gpus = Probed<std::vector<Gpu>>::of(std::move(gpus));
}

// NVML's figures last: of the clocks it tells those of now and corrects the limits that the driver tells.
void ask_for_details(std::vector<Gpu>& gpus) {
  for (const char* verb : {"cuda-details", "nvml-details"}) {
    const auto answer = run_gpu_helper({verb});
    if (!answer || !answer->ok()) continue;  // unknown: what is not there is not shown
    for (const HelperRecord& record : parse_helper_records(answer->out))
      for (Gpu& gpu : gpus)
        if (record.kind == "details" && is_same_pci_device(gpu.pci_address, field(record, "pci")))
          take_gpu_details(record.fields, gpu);
  }
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
  if (request.gpu_details && host.is_live() && snapshot.gpus.present()) ask_for_details(snapshot.gpus.value);
  snapshot.toolkits = probe_toolkits(host);
  snapshot.compilers = probe_compilers(host);
}

// The modules that installed packages declare are examined unless the user named others; of a package that the user named,
// its modules are examined too.
void add_declared_modules(const SnapshotRequest& request, Snapshot& snapshot) {
  if (request.named != nullptr) return;
  const auto named = [&](const std::string& distribution) {
    return std::ranges::any_of(request.modules, [&](const std::string& name) {
      return normalized_name(name) == normalized_name(distribution);
    });
  };
  for (const DeclaredPackage& package : snapshot.declared) {
    if (!request.modules.empty() && !named(package.distribution)) continue;
    for (const std::string& module : package.modules)
      if (std::ranges::find(snapshot.modules, module) == snapshot.modules.end())
        snapshot.modules.push_back(module);
  }
}

// Facts about one Python environment. Without a usable Python the dependent facts stay NotRun and repeat its
// reason, so that no check takes "not looked at" for "absent".
void probe_environment(const Host& host, const SnapshotRequest& request, Snapshot& snapshot) {
  snapshot.python = probe_python(host, request.python);
  if (!snapshot.python.present()) {
    const Message why = snapshot.python.note;
    snapshot.distributions.note = snapshot.torch.note = snapshot.extensions.note = snapshot.importers.note =
        why;
    set_requirements(snapshot, unread_requirements(request.required));
    return;
  }
  const Python& python = snapshot.python.value;
  snapshot.disk = probe_disk(host, python.prefix);
  snapshot.distributions = probe_distributions(host, python);
  snapshot.declared = probe_declared(host, snapshot.distributions.value);
  add_declared_modules(request, snapshot);
  snapshot.torch = probe_torch(host, python, snapshot.distributions.value);
  snapshot.reachable = probe_reachable(host, snapshot);
  if (request.with_exports) snapshot.exports = probe_exports(host, snapshot);
  set_requirements(snapshot, probe_required(host, snapshot, request.required));
  // With --so, the named files take the place of the installed modules.
  if (request.named != nullptr) return probe_named_files(*request.named, snapshot);
  snapshot.importers = probe_importers(host, python, snapshot.modules);
  // Resolving a module starts with `import torch`, so probe_extensions() finds what torch's own libraries
  // lack on the way. Both lists become fields of `torch` below.
  std::vector<TorchNeed> torch_missing;
  std::vector<BindingMismatch> torch_mismatches;
  snapshot.extensions = probe_extensions(host, snapshot, snapshot.modules, torch_missing, &torch_mismatches);
  snapshot.packages_asked = find_asked_packages(host, snapshot);
  snapshot.torch.value.missing_libraries = std::move(torch_missing);
  snapshot.torch.value.mismatches = std::move(torch_mismatches);
  if (!snapshot.torch.value.mismatches.empty()) snapshot.torch.value.cuda_pins = cuda_pins(host, snapshot);
  snapshot.built_for = date_distributions(host, snapshot.distributions.value, snapshot.extensions.value);
  snapshot.packages = probe_packages(host, snapshot);
  snapshot.package_importers = probe_package_importers(host, python);
  snapshot.project = probe_project(host, python);
  snapshot.missing_requirements = probe_requirements(host, snapshot);
  snapshot.repairs = probe_repairs(host, python);
  if (host.is_live()) set_installers(snapshot, probe_installers(host, python));
}

// What only the current folder wants is a checkout's, not the environment's.
bool is_wanted(const Snapshot& snapshot, const std::string& module) {
  const auto in_current_folder = [&](const std::string& file) {
    return std::ranges::any_of(snapshot.python.value.sys_path, [&](const PathEntry& entry) {
      return entry.origin == "cwd" && file.starts_with(entry.path + "/");
    });
  };
  return std::ranges::find(snapshot.extensions.value, module, &Extension::module) !=
             snapshot.extensions.value.end() ||
         std::ranges::any_of(snapshot.importers.value, [&](const Importer& one) {
           return one.module == module && !one.masked && !in_current_folder(one.file);
         });
}

// A module that is looked for by default and that nothing here wants must not show up as "not installed".
void forget_rare_modules_that_nobody_has(Snapshot& snapshot) {
  std::erase_if(snapshot.modules, [&](const std::string& module) {
    return std::ranges::find(kRareModules, module) != kRareModules.end() && !is_wanted(snapshot, module);
  });
  std::erase_if(snapshot.importers.value, [&](const Importer& one) {
    return std::ranges::find(snapshot.modules, one.module) == snapshot.modules.end();
  });
}

// Fills `audit` once, with the first scope that applies: all packages (--all), the packages named by
// --module, or the extensions that link torch or CUDA. The last is quick enough to need no progress.
void audit(const Host& host, const SnapshotRequest& request, Snapshot& snapshot,
           const std::function<void(const Message&)>& phase) {
  if (request.audit) {
    phase(message("reading the compiled extensions of all packages"));
    snapshot.audit = probe_audit(host, snapshot, AuditScope::All, request.part);
  } else if (!snapshot.packages_asked.empty()) {
    phase(message("reading the compiled extensions of the packages that were named"));
    snapshot.audit = probe_audit(host, snapshot, AuditScope::Packages, request.part);
  } else if (request.audit_linked && snapshot.python.present()) {
    snapshot.audit = probe_audit(host, snapshot, AuditScope::Linked, {});
    set_audit_of_linked(snapshot);
  }
}

// `--module mamba_ssm` also means the compiled module that the same distribution installs as a top-level
// module, outside the directory of the package.
void add_modules_of_packages(std::vector<std::string>& modules) {
  const auto has = [&](const char* name) { return std::ranges::find(modules, name) != modules.end(); };
  if (has("mamba_ssm") && !has("selective_scan_cuda")) modules.emplace_back("selective_scan_cuda");
  if (has("causal_conv1d") && !has("causal_conv1d_cuda")) modules.emplace_back("causal_conv1d_cuda");
}

}  // namespace

Snapshot take_snapshot(const Host& host, const SnapshotRequest& request) {
  const auto phase = [&](const Message& sentence) {
    if (request.progress) request.progress(sentence);
  };
  Snapshot snapshot;
  snapshot.schema = 1;
  snapshot.tool_version = kToolVersion;
  snapshot.modules = request.modules;
  if (request.modules.empty()) {
    snapshot.modules = kDefaultModules;
    snapshot.modules.insert(snapshot.modules.end(), kRareModules.begin(), kRareModules.end());
  }
  snapshot.modules_asked = request.modules;
  add_modules_of_packages(snapshot.modules);
  for (const char* name : kVariables)
    if (const auto value = host.env(name)) snapshot.environment[name] = *value;
  phase(message("reading the machine"));
  probe_machine(host, request, snapshot);
  phase(message("reading the environment"));
  probe_environment(host, request, snapshot);
  if (request.modules.empty()) forget_rare_modules_that_nobody_has(snapshot);
  audit(host, request, snapshot, phase);
  // The sources are read against the headers of the installed torch, so they come last.
  if (request.named != nullptr) return snapshot;
  snapshot.sources = preflight::probe_sources(host, request.sources, snapshot.torch);
  snapshot.build_tools = preflight::probe_build_tools(host, snapshot);
  return snapshot;
}

}  // namespace scankit::probes

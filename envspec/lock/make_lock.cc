// SPDX-License-Identifier: Apache-2.0
#include "envspec/lock/make_lock.h"

#include <algorithm>
#include <set>

#include "builder/module/manifest.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/tool_version.h"
#include "doctor/probes/extensions/extensions.h"
#include "doctor/probes/python/python_text.h"
#include "envspec/lock/installed.h"
#include "envspec/lock/lock_values.h"

namespace scankit {
namespace {

LockedMachine machine_of(const Snapshot& snapshot, const EnvironmentFacts& facts) {
  LockedMachine machine;
  machine.architecture = processor_of(snapshot);
  machine.libc = snapshot.libc.value.kind;
  machine.libc_version = snapshot.libc.value.version;
  machine.driver = facts.driver.value;
  machine.driver_cuda = snapshot.driver.value.cuda_version;
  machine.libcuda = snapshot.driver.value.libcuda_version;
  if (!facts.driver.present()) machine.why_no_driver = facts.driver.note;
  machine.gpus = facts.gpus.value;
  if (!facts.gpus.present()) machine.why_no_gpus = facts.gpus.note;
  std::set<std::string> compilers;
  for (const Compiler& one : facts.compilers.value) compilers.insert(one.kind + " " + one.version);
  machine.compilers.assign(compilers.begin(), compilers.end());
  return machine;
}

std::string source_of(const Distribution& one) {
  if (one.editable) return "editable";
  if (!one.conda_channel.empty()) return "conda";
  return one.installer == "scankit" ? "here" : "index";
}

// Of two of a name the first is the one that counts; a version that no installer would take is none.
std::vector<LockedDistribution> distributions_of(const Snapshot& snapshot) {
  std::vector<LockedDistribution> locked;
  std::set<std::string> seen;
  for (const Distribution& one : snapshot.distributions.value) {
    const std::string name = normalized_name(one.name);
    if (!is_locked_name(name) || !is_locked_version(one.version) || !seen.insert(name).second) continue;
    locked.push_back({name, one.version, one.installer, source_of(one), {}, say("the index was not asked")});
  }
  std::ranges::sort(locked, {}, &LockedDistribution::name);
  return locked;
}

// Of what scankit built; any other file has none.
void add_module(const PlacedLibrary& placed, EnvironmentLock& lock) {
  if (!placed.distribution.starts_with("scankit-")) return;
  LockedModule module;
  module.path = placed.inner;
  module.distribution = placed.distribution;
  module.module = path_basename(placed.inner);
  module.module.erase(std::min(module.module.find('.'), module.module.size()));
  if (auto manifest = read_manifest(placed.path)) module.manifest = *std::move(manifest);
  lock.modules.push_back(std::move(module));
}

}  // namespace

EnvironmentLock lock_facts(const Snapshot& snapshot) {
  const EnvironmentFacts facts = facts_of(snapshot);
  EnvironmentLock lock;
  lock.tool_version = kToolVersion;
  lock.machine = machine_of(snapshot, facts);
  const Python& python = snapshot.python.value;
  lock.python = {python.version, python.implementation, python.soabi, python.free_threaded};
  const Torch& torch = snapshot.torch.value;
  if (snapshot.torch.present())
    lock.torch = LockedTorch{torch.version,    torch.cuda,         torch.hip,  torch.git,
                             torch.string_abi, torch.cxx_standard, torch.debug};
  lock.distributions = distributions_of(snapshot);
  return lock;
}

LockedLibrary locked_library(const Host& host, const std::string& path) {
  const Extension file = inspect_extension(host, path);
  LockedLibrary library;
  library.size = file.size;
  library.state = file.file_state;
  library.machine = file.machine;
  library.soname = file.soname;
  library.build_id = file.build_id;
  library.needed = file.needed;
  library.glibc_min = file.glibc_min;
  library.glibcxx_min = file.glibcxx_min;
  library.cuda_major = file.cuda_major;
  library.string_abi = file.string_abi;
  library.pybind_internals = file.pybind_internals;
  library.code = code_of(file.images);
  return library;
}

Result<void> lock_files(const Host& host, const Snapshot& snapshot, HashCache& cache,
                        const HashProgress& progress, EnvironmentLock& lock) {
  const PlacedLibraries placed = placed_libraries(host, snapshot);
  if (!placed.unreadable.empty())
    return Error{Errc::PermissionDenied,
                 say("part of the environment cannot be read: {}", placed.unreadable[0]),
                 say("run it as a user who may read it")};
  std::vector<std::string> paths;
  for (const PlacedLibrary& one : placed.libraries) paths.push_back(one.path);
  const auto hashed = hash_files(host, paths, cache, progress);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (!hashed[i].sha256) return hashed[i].sha256.error();
    LockedLibrary library = locked_library(host, paths[i]);
    library.path = placed.libraries[i].inner;
    library.distribution = placed.libraries[i].distribution;
    library.size = hashed[i].size;
    library.sha256 = *hashed[i].sha256;
    lock.libraries.push_back(std::move(library));
    if (host.is_live()) add_module(placed.libraries[i], lock);
  }
  std::ranges::sort(lock.modules, {}, &LockedModule::module);
  return {};
}

}  // namespace scankit

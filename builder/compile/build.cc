// SPDX-License-Identifier: Apache-2.0
#include "builder/compile/build.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <sstream>

#include "builder/compile/compile.h"
#include "builder/fix/distribution.h"
#include "builder/module/assemble.h"
#include "builder/torch_flavor/torch_flavor.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/tool_version.h"
#include "doctor/probes/machine/system.h"

namespace scankit::compile {
namespace {

// The compilers of a toolchain, ready to run. `of_targets` has one pointer into `owned` for each target of
// the choice; `makers` groups the targets by compiler, for the manifest.
struct Compilers {
  explicit Compilers(const toolchain::Toolchain& toolchain) {
    for (const toolchain::Candidate& candidate : toolchain.compilers)
      owned.push_back(toolchain::make_compiler(candidate));
    for (const std::size_t index : toolchain.made_by) of_targets.push_back(owned[index].get());
    for (std::size_t i = 0; i < owned.size(); ++i) {
      makers.push_back({owned[i].get(), {}});
      for (std::size_t t = 0; t < toolchain.made_by.size(); ++t)
        if (toolchain.made_by[t] == i) makers.back().targets.push_back(toolchain.choice.targets[t]);
    }
  }
  std::vector<std::unique_ptr<toolchain::DeviceCompiler>> owned;
  std::vector<const toolchain::DeviceCompiler*> of_targets;
  std::vector<module::ManifestInput::Maker> makers;
};

// What the torch flavor has in place of the shipped host module.
struct TorchFlavor {
  torch_flavor::TorchEnvironment environment;
  torch_flavor::HostModule host;
};

// Finds everything that the torch flavor needs, so that whatever is missing is reported before
// anything is compiled. Restricts the device compiler to torch's CUDA major through `targets`. Null
// for the universal flavor.
Result<std::shared_ptr<TorchFlavor>> prepare_flavor(const Host& host, const Snapshot& snapshot,
                                                    const BuildRequest& request,
                                                    module::TargetRequest& targets) {
  if (request.flavor == Flavor::Universal) return std::shared_ptr<TorchFlavor>();
  auto flavor = std::make_shared<TorchFlavor>();
  SCANKIT_TRY(flavor->environment, torch_flavor::torch_environment(host, snapshot));
  targets.cuda = snapshot.torch.value.cuda;
  return flavor;
}

// Compiles and links the host module against torch. The check that `also_proven` makes later outlives this
// call, so it owns copies of the environment and of the snapshot.
Result<void> build_flavor(const Snapshot& snapshot, const BuildRequest& request, const Cache& cache,
                          const std::shared_ptr<TorchFlavor>& flavor, BuiltModule& built) {
  const torch_flavor::TorchEnvironment& environment = flavor->environment;
  SCANKIT_TRY(flavor->host, torch_flavor::build_host_module({request.module->name, &environment, &cache,
                                                             torch_flavor::torch_parts(), request.progress}));
  built.flavor = Flavor::Torch;
  built.file = built.module + environment.suffix;
  built.made_for = say("for torch {} ({} string ABI) and Python {}, by {} {} as C++{}",
                       environment.torch_version, environment.string_abi, environment.python_version,
                       environment.compiler.kind, environment.compiler.version, environment.cxx_standard);
  if (environment.torch_cuda.empty())
    built.notes.push_back(
        say("torch {} has no CUDA: the module will support CPU tensors only", environment.torch_version));
  const auto facts = std::make_shared<Snapshot>(snapshot);
  built.also_proven = [flavor, facts, module = built.module](const Host& host, const std::string& path) {
    return torch_flavor::assert_torch_module(host, *facts, flavor->environment, module, path);
  };
  return {};
}

// The images are in the order of compile_units(): each target with all its units.
Explanation explain(const module::BundledModule& module, const TorchFlavor* flavor,
                    const CompileRequest& compile) {
  Explanation explanation;
  explanation.module = module.name;
  const std::string_view host = flavor != nullptr ? std::string_view(flavor->host.bytes) : module.host_module;
  explanation.inputs = {{"scankit", kToolVersion},
                        {"host_module_sha256", sha256_hex(host)},
                        {"device_source_sha256", sha256_hex(module.device_source)}};
  if (flavor != nullptr)
    explanation.inputs.insert(explanation.inputs.end(), flavor->host.inputs.begin(),
                              flavor->host.inputs.end());
  const KeyMaker keys(compile);
  for (const module::Target& target : compile.targets)
    for (const toolchain::Unit& unit : compile.units) {
      const Key key = keys.key(unit, target);
      explanation.images.push_back({unit.name, target.name(), key.inputs(), key.digest(), ""});
    }
  return explanation;
}

CompileRequest compile_request(const BuildRequest& request, const Probed<Memory>& memory,
                               const std::vector<module::Target>& targets, const Compilers& compilers,
                               const Cache& cache) {
  CompileRequest compile;
  compile.source_name = request.module->source_name;
  compile.source = request.module->device_source;
  compile.units = request.module->units;
  compile.targets = targets;
  if (!compilers.owned.empty()) compile.compiler = compilers.owned.front().get();
  compile.compilers = compilers.of_targets;
  compile.cache = &cache;
  compile.jobs = request.jobs != 0 ? request.jobs : compile_jobs(memory);
  compile.timeout = request.timeout;
  compile.progress = request.progress;
  return compile;
}

// Explains, compiles, and assembles. Explanation and images are matched by their index.
Result<void> compile_into(BuiltModule& built, const BuildRequest& request, const CompileRequest& compile,
                          const std::vector<module::ManifestInput::Maker>& makers,
                          const TorchFlavor* flavor) {
  const module::BundledModule& module = *request.module;
  built.explanation = explain(module, flavor, compile);
  if (request.explain) request.explain(built.explanation);
  SCANKIT_TRY(const auto images, compile_units(compile));
  for (std::size_t i = 0; i < images.size(); ++i) {
    ++(images[i].from_cache ? built.from_cache : built.compiled);
    built.explanation.images[i].sha256 = images[i].sha256;
    built.images.push_back(
        {images[i].unit, images[i].target, "", images[i].sha256, images[i].from_cache, images[i].compiler});
  }
  built.manifest = module::write_manifest(
      {flavor != nullptr ? "torch" : "universal", &built.explanation, &images, makers});
  SCANKIT_TRY(built.bytes, module::assemble_module(
                               flavor != nullptr ? std::string_view(flavor->host.bytes) : module.host_module,
                               images, built.manifest));
  return {};
}

}  // namespace

Result<Flavor> parse_flavor(const std::string& text) {
  if (text.empty() || text == "universal") return Flavor::Universal;
  if (text == "torch") return Flavor::Torch;
  return Error{Errc::InvalidArgument, message("--flavor {}: scankit builds universal and torch", text), ""};
}

Result<BuiltModule> build_module(const Host& host, const Snapshot& snapshot, const BuildRequest& request) {
  const Cache cache(request.cache_folder, request.cache_size);
  module::TargetRequest targets = request.targets;
  SCANKIT_TRY(const auto flavor, prepare_flavor(host, snapshot, request, targets));
  SCANKIT_TRY(toolchain::Toolchain toolchain,
              toolchain::choose_toolchain(host, snapshot, targets, cache, request.toolchain));
  SCANKIT_CHECK(toolchain::complete_toolchain(host, snapshot, targets, cache, request.toolchain, toolchain));
  const Compilers compilers(toolchain);
  BuiltModule built;
  built.module = request.module->name;
  built.file = fix::module_file(built.module, snapshot.python.value);
  built.notes = toolchain.choice.notes;
  built.targets = toolchain.choice.targets;
  built.compiler = toolchain.said();
  Probed<Memory> memory = snapshot.memory;
  if (memory.present()) memory.value.available = free_memory(host, memory.value);
  auto compile = compile_request(request, memory, built.targets, compilers, cache);
  // The cache's directory is not checked: if it is full, the build goes on without it.
  compile.before = [&] { return check_resources(host, memory, {temporary_folder()}); };
  if (flavor) SCANKIT_CHECK(build_flavor(snapshot, request, cache, flavor, built));
  const auto made = compile_into(built, request, compile, compilers.makers, flavor.get());
  if (request.progress)
    for (const std::string& note : cache.take_notes()) request.progress(say("note: {}", note));
  if (!made) return made.error();
  return built;
}

Result<void> write_module(const Host& host, const BuiltModule& built, const std::string& path) {
  // Beside the path first: a file that is already at `path` stays until the new one is proven.
  const std::string aside = path + ".unproven-" + std::to_string(::getpid());
  auto good = write_file_atomically(aside, built.bytes, 0755);  // which may fail after the file is there
  if (good)
    good = module::assert_module(host, aside, {built.module, built.images, built.also_proven != nullptr});
  if (good && built.also_proven) good = built.also_proven(host, aside);
  if (good && ::rename(aside.c_str(), path.c_str()) != 0)
    good = Error{Errc::Io, message("cannot rename to {}: {}", path, std::strerror(errno)), ""};
  if (!good) ::unlink(aside.c_str());
  if (good) good = fsync_directory(path_dirname(path));
  return good;
}

namespace {

// The largest unit takes NVRTC 13.0 145 MB (measured: forward_f16 for sm_90).
constexpr std::uint64_t kCompiler = 200u << 20;
// Images of every architecture, and nvcc's own files, stay below this.
constexpr std::uint64_t kFiles = 100u << 20;

// One counter of memory.stat, in bytes; 0 if it cannot be read. `key` ends with a blank, so that
// "inactive_file " does not match a longer name.
std::uint64_t reclaimable(const Host& host, const std::string& group, const std::string& key) {
  const auto text = host.read_file(group + "/memory.stat", 1u << 16);
  std::istringstream lines(text ? *text : "");
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(key)) return probes::leading_number(line.substr(key.size())).value_or(0);
  return 0;
}

// Bytes that a group leaves below its limit; nothing if it has no limit. Its usage counts page cache, and
// inactive file pages are what the kernel drops first (cgroup v2 and v1 name them differently).
std::optional<std::uint64_t> left_of(const Host& host, const probes::ControlGroup& group) {
  const auto limit = probes::limit_of(host, group);
  const auto used =
      host.read_file(group.folder + (group.v2 ? "/memory.current" : "/memory.usage_in_bytes"), 64);
  const auto held = used ? probes::leading_number(*used) : std::nullopt;
  if (!limit || !held) return limit;
  const std::uint64_t gives_way =
      reclaimable(host, group.folder, group.v2 ? "inactive_file " : "total_inactive_file ");
  return *limit - std::min(*limit, *held - std::min(*held, gives_way));
}

std::string in_mb(std::uint64_t bytes) { return std::to_string(bytes >> 20); }

}  // namespace

std::string existing_part(std::string path) {
  struct ::stat info;
  while (path.size() > 1 && ::stat(path.c_str(), &info) != 0) path = path_dirname(path);
  return path;
}

std::uint64_t free_memory(const Host& host, const Memory& memory) {
  std::uint64_t free = memory.available;
  probes::for_each_control_group(host, [&](const probes::ControlGroup& group) {
    if (const auto left = left_of(host, group)) free = std::min(free, *left);
  });
  return free;
}

Result<void> check_resources(const Host& host, const Probed<Memory>& memory,
                             const std::vector<std::string>& folders) {
  if (memory.present()) {
    const std::uint64_t free = free_memory(host, memory.value);
    if (free < kCompiler)
      return Error{Errc::Unsupported,
                   message("a compiler needs {} MB of memory, and only {} MB are free (including the cgroup "
                           "limits)",
                           in_mb(kCompiler), in_mb(free)),
                   message("stop other programs, request more memory (Slurm: --mem=2G), or build on another "
                           "machine: --arch, --for")};
  }
  for (const std::string& folder : folders) {
    struct ::statvfs disk;
    const std::string there = existing_part(folder);
    // f_bavail is what an unprivileged user may take; f_bfree counts the blocks reserved for root as well.
    if (::statvfs(there.c_str(), &disk) != 0) continue;
    const std::uint64_t free = std::uint64_t{disk.f_bavail} * disk.f_frsize;
    if (free < kFiles)
      return Error{Errc::Io,
                   message("a build writes up to {} MB, and {} has only {} MB free", in_mb(kFiles), there,
                           in_mb(free)),
                   message("free some space, or choose other directories: --cache-dir, --out, TMPDIR")};
  }
  return {};
}

std::string temporary_folder() {
  const char* named = std::getenv("TMPDIR");
  return named != nullptr && *named != '\0' ? named : "/tmp";
}

}  // namespace scankit::compile

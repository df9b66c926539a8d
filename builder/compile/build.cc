// SPDX-License-Identifier: Apache-2.0
#include "builder/compile/build.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "builder/compile/compile.h"
#include "builder/fix/distribution.h"
#include "builder/module/assemble.h"
#include "builder/torch_flavor/torch_flavor.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/tool_version.h"

namespace scankit {
namespace {

// The compilers of a toolchain, ready to run. `of_targets` has one pointer into `owned` for each target of
// the choice; `makers` groups the targets by compiler, for the manifest.
struct Compilers {
  explicit Compilers(const Toolchain& toolchain) {
    for (const Candidate& candidate : toolchain.compilers) owned.push_back(make_compiler(candidate));
    for (const std::size_t index : toolchain.made_by) of_targets.push_back(owned[index].get());
    for (std::size_t i = 0; i < owned.size(); ++i) {
      makers.push_back({owned[i].get(), {}});
      for (std::size_t t = 0; t < toolchain.made_by.size(); ++t)
        if (toolchain.made_by[t] == i) makers.back().targets.push_back(toolchain.choice.targets[t]);
    }
  }
  std::vector<std::unique_ptr<DeviceCompiler>> owned;
  std::vector<const DeviceCompiler*> of_targets;
  std::vector<ManifestInput::Maker> makers;
};

// What the torch flavor has in place of the shipped host module.
struct TorchFlavor {
  TorchEnvironment environment;
  HostModule host;
};

// Finds everything that the torch flavor needs, so that whatever is missing is reported before
// anything is compiled. Restricts the device compiler to torch's CUDA major through `targets`. Null
// for the universal flavor.
Result<std::shared_ptr<TorchFlavor>> prepare_flavor(const Host& host, const Snapshot& snapshot,
                                                    const BuildRequest& request, TargetRequest& targets) {
  if (request.flavor == Flavor::Universal) return std::shared_ptr<TorchFlavor>();
  auto flavor = std::make_shared<TorchFlavor>();
  SCANKIT_TRY(flavor->environment, torch_environment(host, snapshot));
  targets.cuda = snapshot.torch.value.cuda;
  return flavor;
}

// Compiles and links the host module against torch. The check that `also_proven` makes later outlives this
// call, so it owns copies of the environment and of the snapshot.
Result<void> build_flavor(const Snapshot& snapshot, const BuildRequest& request, const Cache& cache,
                          const std::shared_ptr<TorchFlavor>& flavor, BuiltModule& built) {
  const TorchEnvironment& environment = flavor->environment;
  SCANKIT_TRY(flavor->host, build_host_module({request.module->name, &environment, &cache, torch_parts(),
                                               request.progress}));
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
    return assert_torch_module(host, *facts, flavor->environment, module, path);
  };
  return {};
}

// The images are in the order of compile_units(): each target with all its units.
Explanation explain(const BundledModule& module, const TorchFlavor* flavor, const CompileRequest& compile) {
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
  for (const Target& target : compile.targets)
    for (const Unit& unit : compile.units) {
      const Key key = keys.key(unit, target);
      explanation.images.push_back({unit.name, target.name(), key.inputs(), key.digest(), ""});
    }
  return explanation;
}

CompileRequest compile_request(const BuildRequest& request, const Probed<Memory>& memory,
                               const std::vector<Target>& targets, const Compilers& compilers,
                               const Cache& cache) {
  CompileRequest compile;
  compile.source_name = request.module->source_name;
  compile.source = request.module->device_source;
  compile.units = request.module->units;
  compile.targets = targets;
  compile.compiler = compilers.owned.front().get();
  compile.compilers = compilers.of_targets;
  compile.cache = &cache;
  compile.jobs = request.jobs != 0 ? request.jobs : compile_jobs(memory);
  compile.timeout = request.timeout;
  compile.progress = request.progress;
  return compile;
}

// Explains, compiles, and assembles. Explanation and images are matched by their index.
Result<void> compile_into(BuiltModule& built, const BuildRequest& request, const CompileRequest& compile,
                          const std::vector<ManifestInput::Maker>& makers, const TorchFlavor* flavor) {
  const BundledModule& module = *request.module;
  built.explanation = explain(module, flavor, compile);
  if (request.explain) request.explain(built.explanation);
  SCANKIT_TRY(const auto images, compile_units(compile));
  for (std::size_t i = 0; i < images.size(); ++i) {
    ++(images[i].from_cache ? built.from_cache : built.compiled);
    built.explanation.images[i].sha256 = images[i].sha256;
    built.images.push_back(
        {images[i].unit, images[i].target, "", images[i].sha256, images[i].from_cache, images[i].compiler});
  }
  built.manifest =
      write_manifest({flavor != nullptr ? "torch" : "universal", &built.explanation, &images, makers});
  SCANKIT_TRY(built.bytes,
              assemble_module(flavor != nullptr ? std::string_view(flavor->host.bytes) : module.host_module,
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
  TargetRequest targets = request.targets;
  SCANKIT_TRY(const auto flavor, prepare_flavor(host, snapshot, request, targets));
  SCANKIT_TRY(Toolchain toolchain, choose_toolchain(host, snapshot, targets, cache, request.toolchain));
  SCANKIT_CHECK(complete_toolchain(host, snapshot, targets, cache, request.toolchain, toolchain));
  const Compilers compilers(toolchain);
  BuiltModule built;
  built.module = request.module->name;
  built.file = module_file(built.module);
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
  if (good) good = assert_module(host, aside, {built.module, built.images, built.also_proven != nullptr});
  if (good && built.also_proven) good = built.also_proven(host, aside);
  if (good && ::rename(aside.c_str(), path.c_str()) != 0)
    good = Error{Errc::Io, message("cannot rename to {}: {}", path, std::strerror(errno)), ""};
  if (!good) ::unlink(aside.c_str());
  if (good) good = fsync_directory(path_dirname(path));
  return good;
}

}  // namespace scankit

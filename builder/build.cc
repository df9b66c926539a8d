// SPDX-License-Identifier: Apache-2.0
#include "builder/build.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "builder/assemble.h"
#include "builder/assertions.h"
#include "builder/compile.h"
#include "builder/manifest.h"
#include "builder/room.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/tool_version.h"

namespace scankit {
namespace {

// The compilers of a toolchain, ready to run.
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

Explanation explain(const ShippedModule& module, const CompileRequest& compile) {
  Explanation explanation;
  explanation.module = module.name;
  explanation.inputs = {{"scankit", kToolVersion},
                        {"host_module_sha256", sha256_hex(module.host_module)},
                        {"device_source_sha256", sha256_hex(module.device_source)}};
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

Result<void> compile_into(BuiltModule& built, const BuildRequest& request, const CompileRequest& compile,
                          const std::vector<ManifestInput::Maker>& makers) {
  const ShippedModule& module = *request.module;
  built.explanation = explain(module, compile);
  if (request.explain) request.explain(built.explanation);
  SCANKIT_TRY(const auto images, compile_units(compile));
  for (std::size_t i = 0; i < images.size(); ++i) {
    ++(images[i].from_cache ? built.from_cache : built.compiled);
    built.explanation.images[i].sha256 = images[i].sha256;
    built.images.push_back(
        {images[i].unit, images[i].target, "", images[i].sha256, images[i].from_cache, images[i].compiler});
  }
  built.manifest = write_manifest({"universal", &built.explanation, &images, makers});
  SCANKIT_TRY(built.bytes, assemble_module(module.host_module, images, built.manifest));
  return {};
}

}  // namespace

Result<BuiltModule> build_module(const Host& host, const Snapshot& snapshot, const BuildRequest& request) {
  const Cache cache(request.cache_folder, request.cache_size);
  SCANKIT_TRY(Toolchain toolchain,
              choose_toolchain(host, snapshot, request.targets, cache, request.toolchain));
  SCANKIT_CHECK(complete_toolchain(host, snapshot, request.targets, cache, request.toolchain, toolchain));
  const Compilers compilers(toolchain);
  BuiltModule built;
  built.module = request.module->name;
  built.notes = toolchain.choice.notes;
  built.targets = toolchain.choice.targets;
  built.compiler = toolchain.said();
  Probed<Memory> memory = snapshot.memory;
  if (memory.present()) memory.value.available = free_memory(host, memory.value);
  auto compile = compile_request(request, memory, built.targets, compilers, cache);
  // Not in the cache's folder: where that is full, the build goes on without it.
  compile.before = [&] { return check_room(host, memory, {temporary_folder()}); };
  const auto made = compile_into(built, request, compile, compilers.makers);
  if (request.progress)
    for (const std::string& note : cache.take_notes()) request.progress(say("note: {}", note));
  if (!made) return made.error();
  return built;
}

Result<void> write_module(const Host& host, const BuiltModule& built, const std::string& path) {
  // Beside it first: a file that stands at `path` stays until the new one is proven.
  const std::string aside = path + ".unproven-" + std::to_string(::getpid());
  SCANKIT_CHECK(write_file_atomically(aside, built.bytes, 0755));
  auto good = assert_module(host, aside, {built.module, built.images});
  if (good && ::rename(aside.c_str(), path.c_str()) != 0)
    good = Error{Errc::Io, say("cannot rename to {}: {}", path, std::strerror(errno)), ""};
  if (!good) ::unlink(aside.c_str());
  if (good) good = fsync_directory(path_dirname(path));
  return good;
}

}  // namespace scankit

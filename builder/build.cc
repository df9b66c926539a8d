// SPDX-License-Identifier: Apache-2.0
#include "builder/build.h"

#include <unistd.h>

#include "builder/assemble.h"
#include "builder/assertions.h"
#include "builder/compile.h"
#include "builder/manifest.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"

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

}  // namespace

Result<BuiltModule> build_module(const Host& host, const Snapshot& snapshot, const BuildRequest& request) {
  const ShippedModule& module = *request.module;
  const Cache cache(request.cache_folder);
  SCANKIT_TRY(Toolchain toolchain,
              choose_toolchain(host, snapshot, request.targets, cache, request.toolchain));
  SCANKIT_CHECK(complete_toolchain(host, snapshot, request.targets, cache, request.toolchain, toolchain));
  const Compilers compilers(toolchain);
  CompileRequest compile;
  compile.source_name = module.source_name;
  compile.source = module.device_source;
  compile.units = module.units;
  compile.targets = toolchain.choice.targets;
  compile.compiler = compilers.owned.front().get();
  compile.compilers = compilers.of_targets;
  compile.cache = &cache;
  compile.jobs = request.jobs != 0 ? request.jobs : compile_jobs(snapshot.memory);
  compile.progress = request.progress;
  BuiltModule built;
  built.module = module.name;
  built.notes = toolchain.choice.notes;
  built.targets = compile.targets;
  built.compiler = toolchain.said();
  for (const Target& target : compile.targets)
    for (const Unit& unit : compile.units) {
      const Key key = key_of(compile, unit, target);
      // Labels and values for programs and comparisons: said in no language.
      built.explanation.append("key ").append(key.digest() + "\n" + key.text() + "\n");
    }
  SCANKIT_TRY(const auto images, compile_units(compile));
  for (const BuiltCode& image : images) ++(image.from_cache ? built.from_cache : built.compiled);
  built.manifest =
      write_manifest({module.name, module.host_module, module.device_source, &images, compilers.makers});
  SCANKIT_TRY(built.bytes, assemble_module(module.host_module, images, built.manifest));
  built.images.reserve(images.size());
  for (const BuiltCode& image : images)
    built.images.push_back({image.unit, image.target, "", image.sha256, image.from_cache, image.compiler});
  return built;
}

Result<void> write_module(const Host& host, const BuiltModule& built, const std::string& path) {
  SCANKIT_CHECK(write_file_atomically(path, built.bytes, 0755));
  auto good = assert_module(host, path, {built.module, built.images});
  if (!good) ::unlink(path.c_str());
  return good;
}

}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
// What was built again from source, held against the lock of what was built before. A compiler of another release, or
// the same one in another directory, writes other bytes: each difference is named, and none is called the same.
#include <algorithm>
#include <map>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "envspec/create/create.h"
#include "envspec/lock/build_facts.h"
#include "envspec/lock/install_metadata.h"

namespace scankit::envspec {
namespace {

constexpr std::size_t kMostNamed = 6;

// "beta/_c.so (other bytes, bound to the same)".
std::string in_words(const EnvironmentLock& lock, const Host& host, const std::string& site,
                     const std::string& path) {
  const auto known = std::ranges::find(lock.libraries, path, &LockedLibrary::path);
  if (known == lock.libraries.end()) return path;
  LockedLibrary here = locked_library(host, path_join(site, path));
  here.build_id = known->build_id;  // of every build its own
  const std::string what = library_differences(*known, here);
  return path + " (" +
         (what.empty() ? english(message("different content, but the same dependencies")) : what) + ")";
}

// The files that are not as in the lock: changed, in addition, or missing.
std::vector<std::string> differing(const EnvironmentLock& lock, const Host& host, const std::string& site,
                                   const std::map<std::string, std::string>& locked,
                                   const std::map<std::string, std::string>& here) {
  std::vector<std::string> lines;
  for (const auto& [path, hash] : locked) {
    const auto found = here.find(path);
    if (found == here.end())
      lines.push_back(path + " (" + english(message("missing")) + ")");
    else if (found->second != hash)
      lines.push_back(in_words(lock, host, site, path));
  }
  for (const auto& [path, hash] : here)
    if (!locked.contains(path)) lines.push_back(path + " (" + english(message("in addition")) + ")");
  return lines;
}

ProofStep compare_one(const Subject& made, const SourceBuild& build, const EnvironmentLock& lock) {
  ProofStep step{build_step(build.name), "not_verified", "", 0};
  const auto installed =
      std::ranges::find_if(made.snapshot.distributions.value,
                           [&](const Distribution& one) { return normalized_name(one.name) == build.name; });
  const LockedDistribution* locked = find_locked(lock, build.name);
  if (installed == made.snapshot.distributions.value.end() || locked == nullptr) {
    step.detail = message("it is not installed");
    return step;
  }
  const auto packed = repack(*made.host, *installed);
  if (!packed) {
    step.detail = packed.error().message;
  } else if (!locked->build || locked->build->files.empty()) {
    step.detail = message("the lock has no hashes of its files");
  } else if (const auto lines = differing(lock, *made.host, path_dirname(installed->path),
                                          locked->build->files, packed->files);
             lines.empty()) {
    step.state = "passed";
  } else {
    std::vector<std::string> shown(lines.begin(),
                                   lines.begin() + static_cast<long>(std::min(lines.size(), kMostNamed)));
    step.detail = message_n(lines.size(), "{0} of {1} files differs from the lock: {2}",
                            "{0} of {1} files differ from the lock: {2}", lines.size(),
                            locked->build->files.size(), join(shown));
    const LockedToolchain here =
        toolchain_of(*made.host, placed_libraries(*made.host, made.snapshot), *installed);
    const std::string other = toolchain_differences(*locked->build, here, made.snapshot.torch.value.version);
    if (!other.empty()) step.detail = message("{}; built with: {}", step.detail, other);
  }
  return step;
}

// What is there now in the place of the locked libraries of what was built.
Result<void> take_built_libraries(const Subject& made, const std::vector<SourceBuild>& builds,
                                  EnvironmentLock& lock) {
  const auto is_built = [&](const std::string& name) {
    return !name.empty() && std::ranges::find(builds, name, &SourceBuild::name) != builds.end();
  };
  std::erase_if(lock.libraries, [&](const LockedLibrary& one) { return is_built(one.distribution); });
  for (const PlacedLibrary& one : placed_libraries(*made.host, made.snapshot).libraries) {
    if (!is_built(one.distribution)) continue;
    LockedLibrary library = locked_library(*made.host, one.path);
    library.path = one.inner;
    library.distribution = one.distribution;
    SCANKIT_TRY(library.sha256, sha256_file(one.path));
    lock.libraries.push_back(std::move(library));
  }
  std::ranges::sort(lock.libraries, {}, &LockedLibrary::path);
  return {};
}

}  // namespace

std::string build_step(const std::string& name) { return fmt::format("build {}", name); }

Result<std::vector<ProofStep>> compare_builds(const Subject& made, const std::vector<SourceBuild>& builds,
                                              EnvironmentLock& lock) {
  std::vector<ProofStep> steps;
  if (builds.empty()) return steps;
  for (const SourceBuild& build : builds) steps.push_back(compare_one(made, build, lock));
  SCANKIT_CHECK(take_built_libraries(made, builds, lock));
  return steps;
}

Result<std::vector<ProofStep>> prove_with_builds(const Subject& made, EnvironmentLock& lock,
                                                 const std::string& file,
                                                 const std::vector<SourceBuild>& builds,
                                                 const std::string& cache_dir) {
  SCANKIT_TRY(std::vector<ProofStep> steps, compare_builds(made, builds, lock));
  SCANKIT_TRY(auto proven, prove(made, {lock, file}, cache_dir));
  std::ranges::move(proven, std::back_inserter(steps));
  return steps;
}

}  // namespace scankit::envspec

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/probes/packages/distributions.h"
#include "envspec/create/create.h"
#include "envspec/lock/install_metadata.h"

namespace scankit::envspec {
namespace {

// The packages whose compiled files are not the locked ones, though their version may be: changed, missing, or
// in addition. An Error names a file that no package can bring back.
Result<std::set<std::string>> with_other_files(const Subject& subject, const EnvironmentLock& lock) {
  HashCache cache("");
  EnvironmentLock now;
  SCANKIT_CHECK(lock_files(*subject.host, subject.snapshot, cache, {}, now));
  std::map<std::string, std::string> here;
  for (const LockedLibrary& one : now.libraries) here[one.path] = one.sha256;
  std::set<std::string> names;
  std::vector<std::string> ownerless;
  const auto differs = [&](const LockedLibrary& one) {
    if (find_locked(lock, one.distribution) != nullptr)
      names.insert(one.distribution);
    else if (one.distribution.empty())
      ownerless.push_back(one.path);
  };
  std::set<std::string> locked;
  for (const LockedLibrary& one : lock.libraries) {
    locked.insert(one.path);
    if (const auto found = here.find(one.path); found == here.end() || found->second != one.sha256)
      differs(one);
  }
  for (const LockedLibrary& one : now.libraries)
    if (!locked.contains(one.path)) differs(one);
  if (ownerless.empty()) return names;
  return Error{Errc::InvalidArgument,
               message_n(ownerless.size(), "{} compiled file is not as locked and belongs to no package: {}",
                         "{} compiled files are not as locked and belong to no package: {}", ownerless.size(),
                         first_lines(ownerless)),
               message("make a new environment: scankit env create DIR")};
}

// The packages that the environment's record calls built from an archive of this very lock, and whose files are still
// those of the record. A lock with another torch needs another build, so that the record of another lock says nothing.
std::set<std::string> built_before(const Subject& subject, const EnvironmentLock& lock) {
  std::set<std::string> names;
  const auto record = read_record(subject.snapshot.python.value.prefix);
  if (!record || record->lock_sha256 != hash_of(lock)) return names;
  HashCache cache("");
  for (const Distribution& one : subject.snapshot.distributions.value) {
    const std::string name = normalized_name(one.name);
    const LockedDistribution* locked = find_locked(lock, name);
    const auto content = record->content.find(name);
    if (locked == nullptr || locked->version != one.version || content == record->content.end()) continue;
    if (std::ranges::find(record->proof, build_step(name), &ProofStep::what) == record->proof.end()) continue;
    const auto hash = content_hash(*subject.host, one, cache);
    if (hash && *hash == content->second) names.insert(name);
  }
  return names;
}

// A wheel that is here by now counts more than a build.
std::vector<SourceBuild> kept_builds(const EnvironmentLock& lock, const std::set<std::string>& built,
                                     const std::vector<std::string>& folders) {
  std::vector<SourceBuild> kept;
  for (const LockedDistribution& one : lock.distributions) {
    const LockedArtifact* archive = source_archive(one);
    if (archive == nullptr || !one.artifact || !built.contains(one.name)) continue;
    std::string why;
    if (archive == &*one.artifact || find_file(*one.artifact, folders, why).empty())
      kept.push_back({one.name, one.version, *archive, ""});
  }
  return kept;
}

// pip, setuptools and the like stay: an installer may be what this environment is changed with.
Result<void> add_removals(const Subject& subject, const EnvironmentLock& lock, SyncChange& change) {
  std::set<std::string> seen;
  for (const Distribution& one : subject.snapshot.distributions.value) {
    const std::string name = normalized_name(one.name);
    if (!seen.insert(name).second || is_installers_own(name) || find_locked(lock, name) != nullptr) continue;
    if (!is_locked_name(name))  // METADATA is a stranger's text, and "--log=FILE" is an option
      return Error{
          Errc::Malformed,
          message("the package in {} is named {}, which is not a package name, and nothing was changed",
                  one.path, shown_value(one.name)),
          message("remove that directory, or make a new environment: scankit env create DIR")};
    change.remove.push_back(name);
    change.removed.push_back(one.name + "==" + one.version);
  }
  return {};
}

}  // namespace

Result<SyncChange> change_of(const Subject& subject, const EnvironmentLock& lock,
                             const std::vector<std::string>& folders, bool offline) {
  SyncChange change;
  SCANKIT_TRY(const std::set<std::string> other_files, with_other_files(subject, lock));
  SCANKIT_CHECK(add_removals(subject, lock, change));
  change.kept = kept_builds(lock, built_before(subject, lock), folders);
  EnvironmentLock changed;
  for (const LockedDistribution& one : lock.distributions) {
    const Distribution* here = find_distribution(subject.snapshot.distributions.value, one.name);
    if (!one.artifact) continue;  // check_environment() has refused it
    if (std::ranges::find(change.kept, one.name, &SourceBuild::name) != change.kept.end()) continue;
    if (here == nullptr || here->version != one.version || other_files.contains(one.name))
      changed.distributions.push_back(one);
  }
  change.build = sources_to_build(changed, folders, offline);
  SCANKIT_TRY(change.notes, check_toolchain(lock, change.build, subject.snapshot));
  changed = without_packages(changed, change.build);
  SCANKIT_CHECK(find_wheels(changed, folders, offline));
  for (const LockedDistribution& one : changed.distributions)
    change.install.push_back(find_locked(lock, one.name));
  return change;
}

}  // namespace scankit::envspec

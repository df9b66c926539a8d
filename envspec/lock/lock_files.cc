// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <optional>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/checks/snapshot_queries.h"
#include "doctor/report/progress.h"
#include "envspec/check/check.h"
#include "envspec/lock/hash_files.h"
#include "envspec/lock/install_metadata.h"
#include "envspec/lock/lock.h"

// The questions of a lock about packages and compiled files. A package of another version is one
// finding; its files are not reported in addition.
namespace scankit::envspec {
namespace {

// Modules that scankit built ("scankit-selective-scan-cuda") are on no index: scankit
// builds them again.
std::vector<Fix> install(const LockedDistribution& locked) {
  if (locked.name.starts_with("scankit-")) {
    std::string module = locked.name.substr(std::string_view("scankit-").size());
    for (char& c : module)
      if (c == '-') c = '_';
    return {InstallModule{module}};
  }
  return {InstallPackages{{locked.name + "==" + locked.version}}};
}

// `here` is nullptr where the package is not installed; `index` is its place in the snapshot,
// for the evidence.
void compare_distribution(Outcome& outcome, const LockView& view, const LockedDistribution& locked,
                          const Distribution* here, std::size_t index) {
  if (here != nullptr && here->version == locked.version) return;
  Finding finding = lock_finding(view, Cause::DriftLockPackage, locked.name, "");
  finding.fixes = install(locked);
  if (here == nullptr) {
    finding.summary =
        message("{} locks {} {}, which is not installed", view.file, locked.name, locked.version);
  } else {
    finding.summary =
        message("{} locks {} {}, but {} is installed", view.file, locked.name, locked.version, here->version);
    finding.evidence.push_back({"/distributions/value/" + std::to_string(index) + "/version", here->version});
  }
  if (is_installers_own(locked.name)) finding.circumstances = {Circumstance::InstallersOwnPackage};
  drifted(outcome, std::move(finding));
}

}  // namespace

Outcome locked_packages(const LockView& view) {
  Outcome outcome = asked("lock-packages", message("Are the locked packages installed, and no others?"));
  const auto& installed = view.subject.snapshot.distributions;
  if (!fact_is_known(outcome, installed.state, why_missing(installed)) &&
      installed.state != ProbeState::Absent)
    return outcome;
  std::map<std::string, std::size_t> places;  // the first of a name is the one that counts
  for (std::size_t i = 0; i < installed.value.size(); ++i)
    places.emplace(normalized_name(installed.value[i].name), i);
  for (const LockedDistribution& locked : view.lock.distributions) {
    const auto place = places.find(locked.name);
    const bool there = place != places.end();
    const std::size_t index = there ? place->second : 0;
    compare_distribution(outcome, view, locked, there ? &installed.value[index] : nullptr, index);
  }
  for (const auto& [name, index] : places) {
    if (name.empty() || name == kOurselves || find_locked(view.lock, name) != nullptr) continue;
    const Distribution& extra = installed.value[index];
    Finding finding =
        lock_finding(view, Cause::DriftLockPackageExtra, name,
                     message("{} {} is installed but is not in {}", name, extra.version, view.file));
    finding.evidence.push_back({"/distributions/value/" + std::to_string(index) + "/version", extra.version});
    finding.fixes = {Advice{message("uninstall it, or lock it: scankit env lock")}};
    if (is_installers_own(name)) finding.circumstances = {Circumstance::InstallersOwnPackage};
    drifted(outcome, std::move(finding));
  }
  return outcome;
}

// "string ABI new -> old; needs libcudart.so.12 -> libcudart.so.13": what is different about a library
// whose hash differs. "" where it is bound to the same as before.
std::string library_differences(const LockedLibrary& locked, const LockedLibrary& here) {
  std::string text;
  const auto add = [&](const char* what, const std::string& a, const std::string& b) {
    if (a != b)
      text += (text.empty() ? "" : "; ") + std::string(what) + " " + (a.empty() ? "-" : a) + " -> " +
              (b.empty() ? "-" : b);
  };
  add("file", locked.state, here.state);
  add("processor", locked.machine, here.machine);
  add("string ABI", locked.string_abi, here.string_abi);
  add("CUDA", locked.cuda_major, here.cuda_major);
  add("glibc", locked.glibc_min, here.glibc_min);
  add("GLIBCXX", locked.glibcxx_min, here.glibcxx_min);
  add("pybind11", locked.pybind_internals, here.pybind_internals);
  add("code", join(locked.code), join(here.code));
  add("needs", join(locked.needed), join(here.needed));
  add("build-id", locked.build_id, here.build_id);
  return text;
}

namespace {

// Compares the hash of every locked library with the installed file of the same inner path.
class FileCheck {
 public:
  FileCheck(const LockView& view, const Host& host, HashCache& cache)
      : view_(view), host_(host), cache_(cache) {}

  // Libraries that are in the lock are taken out of `here`; the ones left over are extra.
  Outcome run() {
    const PlacedLibraries placed = placed_libraries(host_, view_.subject.snapshot);
    for (const Message& folder : placed.unreadable) not_known(outcome_, folder);
    std::map<std::string, const PlacedLibrary*> here;
    for (const PlacedLibrary& one : placed.libraries) here[one.inner] = &one;
    std::vector<std::string> paths;
    std::vector<const LockedLibrary*> locked;
    for (const LockedLibrary& one : view_.lock.libraries) {
      const auto at = here.find(one.path);
      if (at == here.end()) {
        missing(one);
        continue;
      }
      paths.push_back(at->second->path);
      locked.push_back(&one);
      here.erase(at);
    }
    const auto hashed = hash(paths);
    for (std::size_t i = 0; i < paths.size(); ++i) compare(*locked[i], paths[i], hashed[i]);
    for (const auto& [inner, one] : here) extra(*one);
    return std::move(outcome_);
  }

 private:
  // The progress line appears with the first bytes: nothing is shown where the cache knows every hash.
  std::vector<HashedFile> hash(const std::vector<std::string>& paths) {
    std::optional<report::Progress> progress;
    auto hashed = hash_files(host_, paths, cache_, [&](std::uint64_t done, std::uint64_t of) {
      if (!progress) progress.emplace(say("hashing the libraries of the packages"));
      progress->bytes(done, of);
    });
    return hashed;
  }

  // Whether the package that owns a file is missing, extra or of another version. locked_packages()
  // reports that, and the differences of its files follow from it. False for a file without an owner.
  bool package_differs(const std::string& name) const {
    if (name.empty()) return false;
    const LockedDistribution* locked = find_locked(view_.lock, name);
    for (const Distribution& one : view_.subject.snapshot.distributions.value)
      if (normalized_name(one.name) == name) return locked == nullptr || locked->version != one.version;
    return true;
  }

  // How to get the locked file back. The version is installed already, so that the installer has
  // to be forced.
  std::vector<Fix> again(const LockedLibrary& locked) const {
    for (const LockedModule& module : view_.lock.modules)
      if (module.path == locked.path) return {InstallModule{module.module}};
    const LockedDistribution* owner = find_locked(view_.lock, locked.distribution);
    if (owner == nullptr) return {};
    return {InstallPackages{{owner->name + "==" + owner->version}, true}};
  }

  void add(Cause cause, const std::string& subject, const std::string& owner, Message summary,
           std::vector<Fix> fixes) {
    if (package_differs(owner)) return;
    Finding finding = lock_finding(view_, cause, subject, std::move(summary));
    finding.fixes = std::move(fixes);
    drifted(outcome_, std::move(finding));
  }

  void missing(const LockedLibrary& locked) {
    add(Cause::DriftLockFile, locked.path, locked.distribution,
        message("{} locks {}, which was not found", view_.file, locked.path), again(locked));
  }

  void compare(const LockedLibrary& locked, const std::string& path, const HashedFile& here) {
    if (!here.sha256) return not_known(outcome_, here.sha256.error().message);
    if (*here.sha256 == locked.sha256) return;
    constexpr std::size_t kShown = 12;
    const std::string what = library_differences(locked, locked_library(host_, path));
    add(Cause::DriftLockFile, path, locked.distribution,
        message("{} locks it with sha256 {}, but it has {} ({})", view_.file, locked.sha256.substr(0, kShown),
                here.sha256->substr(0, kShown),
                what.empty() ? message("different content, but the same dependencies") : what),
        again(locked));
  }

  void extra(const PlacedLibrary& one) {
    const std::string name = path_basename(one.path);
    add(Cause::DriftLockFileExtra, one.path, one.distribution,
        message("{} was found but is not in {}", one.path, view_.file),
        one.distribution.empty() ? std::vector<Fix>{RemoveShadow{one.path, name.substr(0, name.find('.'))}}
                                 : std::vector<Fix>{Advice{message("lock it: scankit env lock")}});
  }

  const LockView& view_;
  const Host& host_;
  HashCache& cache_;
  Outcome outcome_ = asked("lock-files", message("Is every compiled file the locked one?"));
};

// The locked library that a file of the snapshot is: the one with the longest inner path that `path`
// ends with. The snapshot may come from a machine where site-packages is somewhere else.
const LockedLibrary* locked_as(const EnvironmentLock& lock, const std::string& path) {
  const LockedLibrary* found = nullptr;
  for (const LockedLibrary& one : lock.libraries)
    if (path.ends_with("/" + one.path) && (found == nullptr || one.path.size() > found->path.size()))
      found = &one;
  return found;
}

}  // namespace

Outcome locked_files(const LockView& view, const Host& host, HashCache& cache) {
  const Probed<Python>& python = view.subject.snapshot.python;
  if (python.present()) return FileCheck(view, host, cache).run();
  Outcome outcome = asked("lock-files", message("Is every compiled file the locked one?"));
  not_known(outcome, why_missing(python));
  return outcome;
}

// A build-id identifies a build, not the bytes: patchelf and strip change the file and keep it. The
// outcome says how many files could be compared.
Outcome locked_build_ids(const LockView& view) {
  Outcome outcome = asked("lock-files", message("Is every compiled file the locked one?"));
  const Snapshot& snapshot = view.subject.snapshot;
  std::map<std::string, std::pair<std::string, std::string>> ids;  // path -> build-id, pointer
  for (std::size_t i = 0; i < snapshot.extensions.value.size(); ++i)
    ids[snapshot.extensions.value[i].path] = {snapshot.extensions.value[i].build_id,
                                              "/extensions/value/" + std::to_string(i) + "/build_id"};
  for (std::size_t i = 0; i < snapshot.torch.value.libraries.size(); ++i)
    ids[snapshot.torch.value.libraries[i].path] = {
        snapshot.torch.value.libraries[i].build_id,
        "/torch/value/libraries/" + std::to_string(i) + "/build_id"};
  std::size_t compared = 0;
  for (const auto& [path, id] : ids) {
    const LockedLibrary* locked = locked_as(view.lock, path);
    if (locked == nullptr || locked->build_id.empty() || id.first.empty()) continue;
    ++compared;
    if (locked->build_id == id.first) continue;
    Finding finding = lock_finding(
        view, Cause::DriftLockFile, path,
        message("{} locks it with build-id {}, but it has {}", view.file, locked->build_id, id.first));
    finding.evidence.push_back({id.second, id.first});
    drifted(outcome, std::move(finding));
  }
  outcome.not_checked.push_back(
      message("the hashes of {} files: a snapshot contains none; {} of them were compared by their build-id",
              view.lock.libraries.size(), compared));
  return outcome;
}

}  // namespace scankit::envspec

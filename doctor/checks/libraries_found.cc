// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/say.h"
#include "doctor/checks/check.h"
#include "doctor/checks/missing.h"
#include "doctor/checks/view.h"

namespace scankit {
namespace {

bool belongs_to_another_check(const std::string& soname) {
  return is_torch_library(soname) || is_cuda_library(soname) || is_driver_library(soname) ||
         is_library_of_another_python(soname);
}

// What is broken here has no class in the catalogue, so it is said in full and left unknown, never passed
// over.
void add_libraries(const Snapshot& snapshot, const Copy& copy, CheckResult& result) {
  for (const MissingLibrary& library : copy->missing_libraries) {
    if (belongs_to_another_check(library.soname) || torch_lost(snapshot, library.soname)) continue;
    result.unknown.push_back(clauses({say("{} needs {} (by {}), which the loader finds nowhere", copy->path,
                                          library.soname, path_basename(library.needed_by)),
                                      library.found_elsewhere.empty()
                                          ? ""
                                          : say("it does not look at {}", library.found_elsewhere.front())}));
  }
}

void add_versions(const Copy& copy, CheckResult& result) {
  for (const UnmetVersion& unmet : copy->unmet_versions) {
    const std::string& version = unmet.version;
    if (version.starts_with("GLIBC_") || is_compiler_runtime_version(version)) continue;
    result.unknown.push_back(
        say("{} needs version {} of {}, which does not define it: another build of that library",
            unmet.needed_by, version, unmet.library));
  }
}

void add_cuda_names(const Copy& copy, CheckResult& result) {
  for (const MissingLibrary& library : copy->missing_libraries)
    if (is_cuda_library(library.soname) || is_driver_library(library.soname)) return;  // the names are theirs
  const auto names = symbol_evidence(copy, [](const MissingSymbol& s) { return s.owner == "cuda"; });
  if (const std::size_t n = names.size(); n > 0)
    result.unknown.push_back(
        say_n(n,
              "{} needs {} CUDA name that no library in its closure exports, such as {}: an "
              "older CUDA library, or one it was never linked with",
              "{} needs {} CUDA names that no library in its closure exports, such as {}: an "
              "older CUDA library, or one it was never linked with",
              copy->path, n, names.front().value));
}

CheckResult libraries_found(const Snapshot& snapshot) {
  CheckResult result;
  for (const Copy& copy : resolved_copies(snapshot)) {
    add_libraries(snapshot, copy, result);
    add_versions(copy, result);
    add_cuda_names(copy, result);
    const bool wanted =
        was_asked_for(snapshot, copy->module) || !needing_importers(snapshot, copy->module).empty();
    if (snapshot.torch.state == ProbeState::Absent && copy->uses_torch && wanted)
      result.unknown.push_back(say("{} needs torch, which is not installed for this Python", copy->path));
  }
  return result;
}

}  // namespace

extern const Check kLibrariesFound{
    .id = "libraries-found",
    .question = "Does the loader find every other library that the modules need?",
    .needs = kExtensions | kClosures,
    .settled_by_import = true,
    .not_applicable = no_module_installed,
    .run = libraries_found};
}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/say.h"
#include "doctor/checks/check.h"
#include "doctor/checks/missing.h"
#include "doctor/checks/view.h"

namespace scankit {
namespace {

CheckResult driver_library_found(const Snapshot& snapshot) {
  CheckResult result;
  for (const Copy& copy : resolved_copies(snapshot)) {
    for (std::size_t i = 0; i < copy->missing_libraries.size(); ++i) {
      const MissingLibrary& library = copy->missing_libraries[i];
      if (!is_driver_library(library.soname)) continue;
      result.findings.push_back(
          {.cause = Cause::NoDriverLibcuda,
           .subject = copy->path,
           .module = copy->module,
           .summary = say("{} needs {}, which the NVIDIA driver brings and this system does not have",
                          path_basename(library.needed_by), library.soname),
           .evidence = {copy.at("missing_libraries", i, "soname", library.soname)},
           .fixes = module_fixes(snapshot, copy->module,
                                 say("start the container with its GPUs, or install the driver"))});
    }
  }
  return result;
}

}  // namespace

extern const Check kDriverLibraryFound{
    .id = "driver-library-found",
    .question = "Is the driver's library there, where a module is linked with it?",
    .needs = kExtensions | kClosures,
    .settled_by_import = true,
    .not_applicable = no_module_installed,
    .run = driver_library_found};
}  // namespace scankit

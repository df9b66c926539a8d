// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/say.h"
#include "doctor/checks/check.h"
#include "doctor/checks/missing.h"
#include "doctor/checks/view.h"

namespace scankit {
namespace {

// libc, libm, libpthread, librt and libdl all carry GLIBC_ version nodes; the loader refuses a file whose
// node is absent.
CheckResult glibc_new_enough(const Snapshot& snapshot) {
  return {unmet_versions(snapshot, Cause::GlibcTooOld, {"GLIBC_"},
                         say("build the module on this system, or use one made for an older glibc")),
          {}};
}

}  // namespace

extern const Check kGlibcNewEnough{.id = "glibc-new-enough",
                                   .question = "Is this system's glibc as new as each module needs?",
                                   .needs = kExtensions | kClosures,
                                   .settled_by_import = true,
                                   .not_applicable = no_module_installed,
                                   .run = glibc_new_enough};

namespace {

// Which libstdc++ the process loads is the resolver's answer: conda's, the system's or one from
// LD_LIBRARY_PATH.
CheckResult libstdcxx_new_enough(const Snapshot& snapshot) {
  return {
      unmet_versions(
          snapshot, Cause::LibstdcxxTooOld,
          {kCompilerRuntimeVersions.begin(), kCompilerRuntimeVersions.end()},
          say("install a newer libstdc++ where this Python finds it, or rebuild with the older compiler")),
      {}};
}

}  // namespace

extern const Check kLibstdcxxNewEnough{
    .id = "libstdcxx-new-enough",
    .question = "Is the libstdc++ that the process loads as new as each module needs?",
    .needs = kExtensions | kClosures,
    .settled_by_import = true,
    .not_applicable = no_module_installed,
    .run = libstdcxx_new_enough};

}  // namespace scankit

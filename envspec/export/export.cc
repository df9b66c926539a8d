// SPDX-License-Identifier: Apache-2.0
#include "envspec/export/export.h"

#include "doctor/base/say.h"

namespace scankit {

Installable installable(const EnvironmentLock& lock) {
  Installable all;
  for (const LockedDistribution& one : lock.distributions) {
    if (one.artifact)
      all.with_hash.push_back(&one);
    else
      all.left_out.push_back(one.name + "==" + one.version + ": " + one.why_no_artifact);
  }
  return all;
}

std::vector<const LockedDistribution*> built_here(const EnvironmentLock& lock) {
  std::vector<const LockedDistribution*> all;
  for (const LockedDistribution& one : lock.distributions)
    if (one.source == "here" && one.artifact) all.push_back(&one);
  return all;
}

// What no package manager brings, for who reads the file.
std::vector<std::string> header_lines(const EnvironmentLock& lock) {
  std::vector<std::string> lines = {"Written by `scankit env export` from scankit.lock; edit neither.",
                                    "Python " + lock.python.version + ", " + lock.machine.architecture +
                                        ", " + lock.machine.libc + " " + lock.machine.libc_version};
  if (lock.torch && !lock.torch->cuda.empty())
    lines.push_back(
        "CUDA " + lock.torch->cuda + ", " + lock.torch->string_abi + " C++ string ABI" +
        (lock.machine.driver.empty() ? "" : "; made beside NVIDIA driver " + lock.machine.driver));
  return lines;
}

Result<Exported> export_lock(const EnvironmentLock& lock, const std::string& format) {
  if (format == "requirements") return export_requirements(lock);
  if (format == "pylock") return export_pylock(lock);
  if (format == "conda") return export_conda(lock);
  if (format == "dockerfile") return export_dockerfile(lock);
  return Error{Errc::InvalidArgument, say("{} is no format of an export", format),
               say("take requirements, pylock, conda or dockerfile")};
}

}  // namespace scankit

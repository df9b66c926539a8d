// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/base/result.h"
#include "envspec/lock/lock.h"

// A lock in the formats of other tools. Pure functions: the same lock gives the same bytes. The
// values of a lock have forms that cannot end a line or a quotation (lock.h), so that little
// has to be escaped here.
namespace scankit::envspec {

inline constexpr const char* kWheelFolder = "scankit-wheels";  // next to the export: wheels built here

struct Exported {
  std::string file_name;  // "requirements.txt"
  std::string text;
  std::vector<std::string> left_out;  // "name==version: why", of what nothing can install again
  bool needs_requirements = false;    // a Dockerfile: next to it
};
Result<Exported> export_lock(const EnvironmentLock& lock, const std::string& format);

// One package of a requirements file: name, version and hash, without a URL or a path.
std::string requirement_line(const LockedDistribution& one);

Exported export_requirements(const EnvironmentLock& lock);
Exported export_pylock(const EnvironmentLock& lock);
Exported export_conda(const EnvironmentLock& lock);
Exported export_dockerfile(const EnvironmentLock& lock);

// The distributions that can be installed again, and "name==version: why" for each one that cannot.
struct Installable {
  std::vector<const LockedDistribution*> with_hash;
  std::vector<std::string> left_out;
};
Installable installable(const EnvironmentLock& lock);
// The distributions whose wheels an export needs next to it, in kWheelFolder.
std::vector<const LockedDistribution*> built_here(const EnvironmentLock& lock);
// What is at the top of every export, without the comment sign: what no package manager installs, such as
// the driver, for people who read the file.
std::vector<std::string> header_lines(const EnvironmentLock& lock);

}  // namespace scankit::envspec

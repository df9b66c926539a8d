// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/result.h"
#include "envspec/lock/lock.h"

// A lock in the formats of other tools. Pure functions: the same lock gives the same bytes. The
// values of a lock have forms that cannot end a line or a quotation (lock.h), so that little
// has to be escaped here.
namespace scankit::envspec {

inline constexpr const char* kWheelFolder = "scankit-wheels";  // next to the export: wheels built here

// A file that an export refers to by its name, and that is written next to it.
struct FileNextTo {
  std::string file_name, text;
};
struct Exported {
  std::string file_name;  // "requirements.txt"
  std::string text;
  std::vector<std::string> left_out;  // "name==version: why", of what nothing can install again
  std::vector<FileNextTo> next_to;    // the requirements.txt of a Dockerfile
};
Result<Exported> export_lock(const EnvironmentLock& lock, const std::string& format);
// Whether `text` begins as every export does, so that it may be overwritten by the next one.
bool is_an_export(std::string_view text);

// One package of a requirements file: name, version and hash, without a URL or a path.
std::string requirement_line(const LockedDistribution& one);

Exported export_requirements(const EnvironmentLock& lock);
Exported export_pylock(const EnvironmentLock& lock);
Exported export_conda(const EnvironmentLock& lock);
Exported export_dockerfile(const EnvironmentLock& lock);
Exported export_apptainer(const EnvironmentLock& lock);
Exported export_devcontainer(const EnvironmentLock& lock);
// An Error: pixi has no name for the processor.
Result<Exported> export_pixi(const EnvironmentLock& lock);

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
// The header and what was left out, each line after `sign` ("# ").
std::string comment_header(const EnvironmentLock& lock, const std::vector<std::string>& left_out,
                           const std::string& sign = "# ");

// A TOML basic string.
std::string toml_string(const std::string& text);
// In the order of their first package: `conda env export` writes them by priority, which conda-meta does
// not record. An environment that conda did not make gets conda-forge, which has every Python.
std::vector<std::string> channels_of(const EnvironmentLock& lock);
// Of one name; nullptr where conda installed none.
const CondaPackage* find_conda(const EnvironmentLock& lock, std::string_view name);

}  // namespace scankit::envspec

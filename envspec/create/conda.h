// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <set>
#include <string>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/host/host.h"
#include "envspec/create/create.h"
#include "envspec/lock/lock.h"
#include "envspec/spec/spec.h"

// `scankit env create` by conda: Python and conda's packages are the work of the user's conda, mamba or
// micromamba, and pip installs the others there. In the order of use.
namespace scankit::envspec {

struct CondaProgram {
  // Which command line it has. mamba is conda's up to 1, and libmamba's from 2 on, as micromamba.
  enum class Kind { Conda, Libmamba };
  Kind kind = Kind::Conda;
  std::string program, version, found_by;  // found_by: "CONDA_EXE", "MAMBA_EXE", "PATH"
};
// Asks the program for its version. Errc::NotFound: there is none. Errc::Unsupported: it is too old.
Result<CondaProgram> find_conda_program(const Host& host);
// Of what `--version` prints: "conda 24.7.1", "mamba 1.5.8\nconda 24.3.0", "2.0.5".
Result<CondaProgram> conda_of_version(std::string_view printed);

// Whether conda's packages are a part of it.
bool came_from_conda(const EnvironmentLock& lock);
// conda's packages of the lock: pip's are in conda's records too.
std::vector<CondaPackage> packages_of_conda(const EnvironmentLock& lock);

// The files that conda installs without looking for a package: a line each, with its hash. "" where the lock
// has no URL or MD5 of one. `folder`: where all of them are; "": at their URLs.
std::string explicit_file(const EnvironmentLock& lock, const std::string& folder);
// An Error that names each package that is not in the directory with the hash of the lock.
Result<void> check_conda_files(const EnvironmentLock& lock, const std::string& folder);
// "python 3.11.*,!=3.11.2" of "==3.11.*, !=3.11.2": conda ignores the star after "==".
std::string conda_python(const VersionRange& range);

struct CondaRequest {
  CondaProgram conda;
  std::string environment;  // its directory, which does not exist yet
  std::string tools;        // a directory of ours
  int lock = -1;            // its descriptor: conda holds it too
  std::string offline;      // a directory with conda's packages; "": their URLs, or else the channels
};
// The environment of conda's packages of the lock, and none other. A lock without any gets its Python and
// pip from the user's own channels. Every package has the hash of the lock in the end.
Result<void> make_locked_conda(const CondaRequest& request, const EnvironmentLock& lock);
// Python within the range, and pip, from the user's own channels.
Result<void> make_resolved_conda(const CondaRequest& request, const VersionRange& python);
// How the environment's packages differ from the lock, a line each.
std::vector<std::string> other_conda_packages(const Host& host, const std::string& environment,
                                              const EnvironmentLock& lock);

// What conda-meta says of the paths that conda wrote its prefix into.
struct CondaPrefixFiles {
  bool conda = false;  // conda made the environment
  std::set<std::string> text, binary;
};
CondaPrefixFiles prefix_files(const std::string& environment);
// A binary file without `part` in its strings. Each keeps its place and gets zeros at its end, as conda
// installs such files itself.
std::string without_part_in_strings(std::string bytes, const std::string& part);
// Corrects the hashes in conda-meta of files that were rewritten.
Result<void> correct_conda_records(const std::string& environment, const std::vector<std::string>& rewritten);

}  // namespace scankit::envspec

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

namespace scankit {

// The shared libraries of the installed packages, found by walking the site folders.
struct InstalledLibraries {
  std::vector<std::string> files;                            // sorted; each once
  std::map<std::string, std::string> owners;                 // file -> distribution, by RECORD
  std::multimap<std::string, std::string> by_name;           // "libopenblas.so.0" -> file
  std::map<std::string, std::vector<std::string>> by_owner;  // distribution -> files
  std::vector<std::string> folders;                          // walked
  std::vector<Message> unreadable;  // folders or parts of them that could not be, with the reason
};
InstalledLibraries find_installed_libraries(const Host& host, const Snapshot& so_far);

// "" where import may take a file of that name; else why it never does.
Message why_not_for_this_python(const Python& python, const std::string& name);
// Named with a Python tag ("m.cpython-311-x86_64-linux-gnu.so",
// "m.abi3.so"): an extension, whatever it holds.
bool has_python_tag(const std::string& name);

// Every compiled extension below the site directories of sys.path, or of a part of them (AuditScope),
// followed through the loader's rules: those that use torch in the process as it is after `import
// torch`, the others in that of the bare interpreter. `progress` hears how many of the files are done;
// it may be empty.
enum class AuditScope {
  Packages,  // what the packages that the user named hold
  Linked,    // what links torch or CUDA, in whatever package
  All
};
using AuditProgress = std::function<void(std::size_t done, std::size_t of)>;
Probed<Audit> probe_audit(const Host& host, const Snapshot& so_far, AuditScope scope,
                          const AuditProgress& progress);

}  // namespace scankit

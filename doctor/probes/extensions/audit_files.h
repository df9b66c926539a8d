// SPDX-License-Identifier: Apache-2.0
#pragma once
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
  std::vector<std::string> folders, unreadable;  // walked; and those that could not be, with the reason
};
InstalledLibraries find_installed_libraries(const Host& host, const Snapshot& so_far);

// "" where import may take a file of that name; else why it never does.
Message why_not_for_this_python(const Python& python, const std::string& name);
// Named with a Python tag ("m.cpython-311-x86_64-linux-gnu.so",
// "m.abi3.so"): an extension, whatever it holds.
bool has_python_tag(const std::string& name);

}  // namespace scankit

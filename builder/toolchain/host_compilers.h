// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

// The C++ compilers that nvcc takes: it starts one, as a preprocessor, even for device code alone.
namespace scankit {

struct HostCompilerRange {
  unsigned gcc_max = 0, clang_min = 0, clang_max = 0;  // majors; 0: not known
  std::string source;                                  // the file that says it, or what the table rests on
};
std::string shown(const HostCompilerRange& range);  // "gcc up to 15, clang 7 to 20"

// The range by the nvcc's own crt/host_config.h, in the first of the directories that has one, else by the
// table of releases ("13.0"). All zeros if neither knows it.
HostCompilerRange host_compiler_range(const Host& host, const std::vector<std::string>& include_folders,
                                      const std::string& release);

// First what NVCC_CCBIN, CUDAHOSTCXX and CXX name, then g++ and clang++ on PATH, also under the names with a
// version that distributions have ("g++-12"). Each is asked for its version.
std::vector<Compiler> find_host_compilers(const Host& host);

// The first compiler in the range. The Error says which compilers are here and which would be accepted.
Result<Compiler> choose_host_compiler(const std::vector<Compiler>& compilers, const HostCompilerRange& range,
                                      const std::string& release);

}  // namespace scankit

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

// By the nvcc's own crt/host_config.h in one of the folders, else by its release ("13.0").
HostCompilerRange host_compiler_range(const Host& host, const std::vector<std::string>& include_folders,
                                      const std::string& release);

// g++ and clang++ of PATH, with the versions that distributions append ("g++-12"), after what NVCC_CCBIN,
// CUDAHOSTCXX and CXX name.
std::vector<Compiler> find_host_compilers(const Host& host);

// The first that is in the range. The Error says what is here and what would be taken.
Result<Compiler> choose_host_compiler(const std::vector<Compiler>& compilers, const HostCompilerRange& range,
                                      const std::string& release);

}  // namespace scankit

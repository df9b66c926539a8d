// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

// The user's C++ compiler, asked what it is before anything is built with it.
namespace scankit {

// What torch's headers and libraries demand of a compiler.
struct CxxDemand {
  std::string standard;    // "17", "20": what torch's headers demand
  unsigned gcc_min = 0;    // and the oldest gcc; 0 where they name none
  std::string string_abi;  // "old", "new": torch's own
};

struct CxxCompiler {
  std::vector<std::string> argv;  // {"/usr/bin/g++"}, or {"/usr/bin/ccache", "g++"} as $CXX says
  std::string chosen_by;          // "CXX" or "PATH"
  std::string kind, version;      // "gcc" | "clang", "12.2.0"
  // Of all that the compiler predefines for the standard, and of the program's bytes.
  std::string sha256;
};

// Only $CXX if it is set; else the first that fits of g++, c++, clang++ and their names with a version on
// PATH. The Error says what each one lacks.
Result<CxxCompiler> choose_cxx_compiler(const Host& host, const Snapshot& snapshot, const CxxDemand& demand);

// The macro of libstdc++'s dual ABI: 1 for "new", 0 for "old".
std::string string_abi_flag(const std::string& string_abi);

// Compares what a compiler predefines, as `-dM -E` prints it, with the demand. Sets kind and version of
// `compiler`. Errc::Unsupported if it does not fit.
Result<void> judge_cxx_compiler(std::string_view macros, const CxxDemand& demand, CxxCompiler& compiler);

}  // namespace scankit

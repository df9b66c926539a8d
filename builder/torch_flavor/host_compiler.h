// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

// The user's C++ compiler, asked what it is before anything is built with it.
namespace scankit {

struct CxxDemand {
  std::string standard;    // "17", "20": what torch's headers demand
  unsigned gcc_min = 0;    // and the oldest gcc; 0 where they name none
  std::string string_abi;  // "old", "new": torch's own
};

struct CxxCompiler {
  std::vector<std::string> argv;  // {"/usr/bin/g++"}, or {"/usr/bin/ccache", "g++"} as $CXX says
  std::string chosen_by;          // "CXX" or "PATH"
  std::string kind, version;      // "gcc" | "clang", "12.2.0"
  // Of what it predefines for the standard, its own version among it, and of the program's bytes.
  std::string sha256;
};

// $CXX and nothing else where it is set, else the first of g++, c++, clang++ and their numbered names on PATH
// that fits. The Error says what each one lacks.
Result<CxxCompiler> choose_cxx_compiler(const Host& host, const Snapshot& snapshot, const CxxDemand& demand);

std::string string_abi_flag(const std::string& string_abi);

// What a compiler predefines, as `-dM -E` prints it, against
// the demand. Sets kind and version. Errc::Unsupported.
Result<void> judge_cxx_compiler(std::string_view macros, const CxxDemand& demand, CxxCompiler& compiler);

}  // namespace scankit

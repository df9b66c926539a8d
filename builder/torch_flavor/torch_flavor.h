// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "builder/compile/cache.h"
#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

// The user's C++ compiler, asked what it is before anything is built with it.

namespace scankit::torch_flavor {

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

// Everything that a build against the environment's libtorch needs, found before the build starts.
struct TorchEnvironment {
  CxxCompiler compiler;
  std::string torch_version, torch_cuda;  // "2.11.0+cu130", "13.0" ("" for a build without CUDA)
  std::string cxx_standard, string_abi;   // "17", "new": read from torch's headers and from libc10's names
  std::string torch_folder, python_include;
  std::vector<std::string> libraries;   // paths of the files that are linked
  std::vector<std::string> identities;  // of those: "libc10.so BUILD-ID", or the size without one
  std::string python_version, suffix;   // ".cpython-311-x86_64-linux-gnu.so"
  std::optional<Error> no_room;         // why nothing can be compiled now; what the cache holds needs no room
};

// The Error says what is missing and how to get it: an environment, torch, its headers or Python's, a
// compiler. Too little room is not an Error here but `no_room`.
Result<TorchEnvironment> torch_environment(const Host& host, const Snapshot& snapshot);

// Errc::Unsupported if the compiler would run out of memory or of temporary space.
Result<void> evaluate_resources(const Probed<Memory>& memory, const std::vector<BuildPlace>& places);

// What scankit carries for the build (kernels/modules.cmake): one source file, and archives of everything
// that includes no header of torch and is therefore the same for every torch.
struct TorchParts {
  std::string_view source;          // the one file that includes torch's headers
  std::string_view entries, parts;  // archives: each module's PyInit_; everything else
};
const TorchParts& torch_parts();

struct HostModuleRequest {
  std::string module;  // "selective_scan_cuda"
  const TorchEnvironment* environment = nullptr;
  const compile::Cache* cache = nullptr;
  TorchParts parts;
  std::function<void(const std::string&)> progress;  // may be empty
};

struct HostModule {
  std::string bytes;       // a shared library without device images
  compile::Inputs inputs;  // what it depends on
  bool from_cache = false;
};

// Compiles the one file and links the module. Takes it from the cache if the compiler, its flags, torch,
// Python and every header that was read are the same as before. The Error has the compiler's errors, the
// first one in the message.
Result<HostModule> build_host_module(const HostModuleRequest& request);

// The files that `-MD` lists in Make's syntax, without the target.
std::vector<std::string> dependencies_in(std::string_view makefile);

// Checks what a finished module of the torch flavor must be. The file is read back with the doctor's readers
// and resolved as the loader of this environment would do it after `import torch`: it needs torch's libraries
// and the C++ and C run-time libraries and no others, it has torch's string ABI, and every symbol and version
// that it needs exists. assert_module() checks what both flavors promise.
Result<void> assert_torch_module(const Host& host, const Snapshot& snapshot,
                                 const TorchEnvironment& environment, const std::string& module,
                                 const std::string& path);

}  // namespace scankit::torch_flavor

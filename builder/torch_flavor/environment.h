// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "builder/torch_flavor/host_compiler.h"
#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

namespace scankit {

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

}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/checks/snapshot_queries.h"

// Whose a missing library or name is, and what its absence says.
namespace scankit {

bool is_torch_library(const std::string& soname);
bool is_torch_cuda_library(const std::string& soname);  // a CPU build of torch has none of these
bool is_cuda_library(const std::string& soname);        // of the CUDA toolkit
bool is_driver_library(const std::string& soname);      // of the NVIDIA driver

// The version nodes of what g++ brings: libstdc++, libgcc_s, libgomp and their like.
inline constexpr std::array<std::string_view, 8> kCompilerRuntimeVersions{
    "GLIBCXX_", "CXXABI_", "GCC_", "GOMP_", "OMP_", "GFORTRAN_", "LIBATOMIC_", "QUADMATH_"};
bool is_compiler_runtime_version(const std::string& version);

// Of one Python release (libpython3.10.so.1.0), or the C library of Alpine's.
bool is_library_of_another_python(const std::string& soname);

// The missing names that torch should export, by what their absence proves. Positions in missing_symbols.
struct TorchNames {
  std::vector<std::size_t> flipped;  // torch exports them with the other string ABI
  std::vector<std::size_t> drifted;  // torch exports them in neither form
  std::vector<std::size_t>
      not_linked;  // torch exports them, from a library that this file was not linked with
};
TorchNames torch_names(const Copy& copy);

// The evidence of which torch the module was made for.
void add_built_for(const Copy& copy, Finding& finding);

// One finding of `cause` for each module that needs a version, named with one of the prefixes ("GLIBC_"),
// that the library which the loader takes does not define. `otherwise`: what to do where scankit's module
// does not serve.
std::vector<Finding> unmet_versions(const Snapshot& snapshot, Cause cause,
                                    const std::vector<std::string_view>& prefixes,
                                    const std::string& otherwise);

// torch itself needs it and lacks it: torch-complete says so, and what else lacks it is a symptom.
bool torch_lost(const Snapshot& snapshot, const std::string& soname);

// Libraries of other torch releases that it needs: neither
// here nor missing from a torch that should have them.
std::vector<std::size_t> foreign_torch_libraries(const Snapshot& snapshot, const Copy& copy);

}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/checks/snapshot_queries.h"

// To whom a missing library or name belongs, and what its absence proves.
namespace scankit::checks {

bool is_torch_cuda_library(const std::string& soname);  // a CPU build of torch has none of these
bool is_cuda_library(const std::string& soname);        // of the CUDA toolkit
bool is_driver_library(const std::string& soname);      // of the NVIDIA driver

// Prefixes of the version nodes of the libraries that come with GCC: libstdc++, libgcc_s,
// libgomp and others.
inline constexpr std::array<std::string_view, 8> kCompilerRuntimeVersions{
    "GLIBCXX_", "CXXABI_", "GCC_", "GOMP_", "OMP_", "GFORTRAN_", "LIBATOMIC_", "QUADMATH_"};
bool is_compiler_runtime_version(const std::string& version);

// Belongs to one Python release (libpython3.10.so.1.0), or is Alpine's C library.
bool is_library_of_another_python(const std::string& soname);

// The missing names that torch should export, by what their absence proves. All are indices
// into missing_symbols.
struct TorchNames {
  std::vector<std::size_t> flipped;  // torch exports them with the other string ABI
  std::vector<std::size_t> drifted;  // torch exports them in neither form
  std::vector<std::size_t>
      not_linked;  // torch exports them, from a library that this file was not linked with
};
TorchNames torch_names(const Copy& copy);

// Adds the evidence for which torch the module was built.
void add_built_for(const Copy& copy, Finding& finding);

// One finding of `cause` for each module that needs a version node with one of the prefixes ("GLIBC_"),
// which the library that the loader takes does not define. `otherwise` is the advice if scankit's own
// module does not help.
std::vector<Finding> unmet_versions(const Snapshot& snapshot, Cause cause,
                                    const std::vector<std::string_view>& prefixes, const Message& otherwise);

// Whether torch itself needs the library and lacks it. kTorchComplete reports that, and any other file
// that lacks it is a symptom.
bool torch_lost(const Snapshot& snapshot, const std::string& soname);

// Indices of missing libraries that belong to other torch releases: they are neither here nor libraries
// that this torch should have.
std::vector<std::size_t> foreign_torch_libraries(const Snapshot& snapshot, const Copy& copy);

}  // namespace scankit::checks

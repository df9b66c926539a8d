// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/model/snapshot.h"

// The places of the matrix: what the user writes for one axis, values and ranges of them, separated by commas, and the
// snapshot that a place is described as.
namespace scankit::matrix {

// "2.4..2.11", "2.4,2.6", "2.4..", "..2.6" and "all": the values of `known`, which are in ascending order, that are meant. A
// patch release means its minor: "2.6.1" is 2.6. An Error names `option`, what is wrong with it, and what is known.
Result<std::vector<std::string>> values_of_axis(std::string_view option, const std::string& text,
                                                const std::vector<std::string>& known);

// Whether --python names versions rather than an interpreter: "3.9..3.13", "3.11", "all".
bool is_python_axis(std::string_view text);

// The values that the options know. Of torch: the releases of the symbol index; of Python: what any of them has wheels for; of
// CUDA: what torch's own wheels were built with; of glibc: 2.5 (manylinux1) and newer; GPUs with their "sm_".
std::vector<std::string> known_torch_releases(), known_pythons(), known_cuda_releases(), known_glibcs(),
    known_gpus();

// One place of the matrix. Minor releases: torch "2.6", python "3.11", cuda "12.4". Empty `cuda`: a build of torch without it.
struct Place {
  std::string torch, python, cuda;
  std::string machine;  // "x86_64"
  std::string glibc;    // "2.28"
  std::string gpu;      // "sm_90"; "" for none
  std::string driver;   // "" for one that is new enough for everything
  // Sonames that its loader finds beside those of torch and of CUDA.
  std::vector<std::string> system_libraries;
};

// The facts of a machine that has what `place` says and else whatever a file could want of the system, as a snapshot. It is
// made up: the libraries of torch's wheel by their sonames, and nothing of a real folder. For probe_named_files_on_target().
Snapshot described_machine(const Place& place);

// Whether a library belongs to torch or to what its wheels bring of CUDA, in any release: an axis decides whether it is there.
bool depends_on_an_axis(const std::string& soname);

// Whether the wheels of that torch release are there for that Python at all.
bool torch_has_wheels_for(const std::string& torch, const std::string& python);

}  // namespace scankit::matrix

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "doctor/model/snapshot.h"

namespace scankit {

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

}  // namespace scankit

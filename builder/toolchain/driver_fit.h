// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "builder/module/target.h"
#include "doctor/model/snapshot.h"

namespace scankit {

// How a compiler of a CUDA release writes, so that a finished module can be held to it: drivers differ in
// what they read.

// EI_ABIVERSION of its cubins; 0 where the release is none.
unsigned cubin_abi_of(const std::string& release, unsigned sm);
// Whether the driver of the release's own time translates PTX of this ISA ("8.1"). Nothing newer may come
// out of a compiler that is taken for old drivers' sake.
bool ptx_fits(const std::string& isa, const std::string& release);

// Why this machine's driver is not promised to run what a compiler of `release` makes: its cubin ABI version,
// or PTX of its ISA. "" where it is, or where no driver is known.
struct DriverFit {
  std::string why;
  bool refused = false;  // certainly not; else nobody says
};
DriverFit driver_fit(const Probed<Driver>& driver, const std::string& release,
                     const std::vector<Target>& targets);

}  // namespace scankit

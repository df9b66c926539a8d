// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "builder/module/target.h"
#include "doctor/model/snapshot.h"

namespace scankit {

// How a compiler of a CUDA release writes, so that a finished module can be held to it: drivers differ in
// what they read.

// EI_ABIVERSION of the cubins of a compiler of this CUDA release ("13.0"); 0 if it is not a version.
unsigned cubin_abi_of(const std::string& release, unsigned sm);
// Whether a driver of the release's own time translates PTX of this ISA ("8.1"). A compiler that is chosen
// for the sake of old drivers must not write anything newer.
bool ptx_fits(const std::string& isa, const std::string& release);

// Whether this machine's driver runs what a compiler of `release` makes, by the cubins' ABI version and the
// PTX's ISA. `why` is "" if it does, or if no driver is known; else it is a sentence for the user.
struct DriverFit {
  std::string why;
  bool refused = false;  // it certainly does not; false with a `why`: not promised
};
DriverFit driver_fit(const Probed<Driver>& driver, const std::string& release,
                     const std::vector<Target>& targets);

}  // namespace scankit

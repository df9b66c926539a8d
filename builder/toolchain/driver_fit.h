// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "builder/module/target.h"
#include "doctor/model/snapshot.h"

namespace scankit {

// Why this machine's driver is not promised to run what a compiler of `release` makes: its dialect of cubins,
// or PTX of its ISA. "" where it is, or where no driver is known.
struct DriverFit {
  std::string why;
  bool refused = false;  // certainly not; else nobody says
};
DriverFit driver_fit(const Probed<Driver>& driver, const std::string& release,
                     const std::vector<Target>& targets);

}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "doctor/base/result.h"
#include "doctor/model/snapshot.h"

namespace scankit {

// The machine that a spec is for, as `build --for` and `fix --for` want it: its GPUs, and the oldest driver
// that it takes, so that the code is such as that driver reads. `name` is what messages call the file.
Result<Snapshot> machine_of_spec(const std::string& text, const std::string& name);

}  // namespace scankit

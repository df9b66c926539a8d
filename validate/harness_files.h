// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "doctor/base/result.h"

namespace scankit::validate {

// Writes the embedded Python harness into `directory`; returns the file that Python is to run.
Result<std::string> write_harness(const std::string& directory);

}  // namespace scankit::validate

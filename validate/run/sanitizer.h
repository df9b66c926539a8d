// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "validate/run/run.h"

namespace scankit::validate {

// Small cases once more under NVIDIA's compute-sanitizer, each of its tools a case of its own among `seen`'s.
// A note where it is not here.
void run_sanitizer(const ValidateRequest& request, const std::string& script, Validation& seen);

}  // namespace scankit::validate

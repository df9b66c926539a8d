// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "validate/validation.h"

namespace scankit::validate {

// For people: what was run, how near each result comes to its bound, every failure with its reproducer.
std::string text_report(const Validation& validation);
// For programs; README.md lists the fields.
std::string json_report(const Validation& validation);

}  // namespace scankit::validate

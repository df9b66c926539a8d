// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "validate/report/validation.h"

namespace scankit::validate {

// One function for each output format; none of them judges. For people: what was run, how near each result
// comes to its bound, and every failure with the command that reproduces it.
std::string text_report(const Validation& validation);
// The part of it that tells how fast the module is.
std::string speed_text(const Validation& validation);
// For programs; README.md lists the fields.
std::string json_report(const Validation& validation);

// For CI servers, in the dialect of doctor's.
std::string junit_report(const Validation& validation);
// One file with its plots inside.
std::string html_report(const Validation& validation);

// "PASSED: the results of selective_scan_cuda are correct (quick, 8.2 s)".
std::string verdict_line(const Validation& validation);

// The formats of --report, and the text of one.
const std::vector<std::string_view>& validation_formats();
std::string rendered(std::string_view format, const Validation& validation);

}  // namespace scankit::validate

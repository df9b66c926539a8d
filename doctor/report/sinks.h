// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "doctor/model/finding.h"

namespace scankit {

// What a sink needs to know besides the report.
struct SinkOptions {
  bool verbose = false;
  int exit_status = 0;  // with which this run of scankit ends, as far as the findings decide
};

// Each takes a report and returns the whole file. Same report, same bytes: no clock
// and no host name.
std::string doctor_junit(const Report& report);
std::string doctor_sarif(const Report& report, const SinkOptions& options);
std::string doctor_github(const Report& report);
std::string doctor_markdown(const Report& report);
std::string doctor_html(const Report& report);
std::string doctor_prometheus(const Report& report, const SinkOptions& options);

// The formats of `--report FORMAT=FILE`, in the order in which the help lists them.
const std::vector<std::string_view>& report_formats();
// `format` is one of them.
std::string render(std::string_view format, const Report& report, const SinkOptions& options);

}  // namespace scankit

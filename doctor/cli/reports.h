// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "doctor/cli/diagnosis.h"

// The FORMAT=FILE wishes of --report.
namespace scankit {

struct ReportWish {
  std::string format, path;
};
ReportWish parse_report(const std::string& wish);

// The format that takes standard output over, where one does.
std::optional<std::string> format_on_stdout(const std::vector<std::string>& wishes);

// Why the wishes cannot all be met, in one line; "" where they can. `json`: standard output is taken.
std::string report_clash(const std::vector<std::string>& wishes, bool json);

// Writes those that go to files; every one is tried, so that one full disk does not take the others along.
// Returns the exit status that it comes to.
int write_reports(const Diagnosis& diagnosis, const std::vector<std::string>& wishes,
                  const SinkOptions& options);

}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "doctor/cli/reports.h"

namespace scankit::validate {

// The options as the user wrote them. An empty string or an absent value means that the option
// was not given.
struct Options {
  std::optional<std::string> python;
  std::string module = "selective_scan_cuda", against, baseline, upstream_tests, test;
  std::string device = "all";
  bool import_foreign = false, quick = false, full = false, list_cases = false, deterministic = false,
       no_timing = false, commented_parameters = false;
  std::optional<std::uint64_t> seed;
  int timeout = 0;
  std::vector<std::string> only;
  cli::ShowOptions show;
};

// Makes a ValidateRequest of them, and prints what run_validation() found; the exit status. Everything that can be
// wrong with the options is checked before the first child starts.
int validate_command(const Options& options);

}  // namespace scankit::validate

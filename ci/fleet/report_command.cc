// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "ci/fleet/commands.h"
#include "ci/fleet/hostlist.h"
#include "ci/fleet/report.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/cli/commands.h"
#include "doctor/report/text.h"

namespace scankit::fleet {
namespace {

// "@FILE": a name a line, as `kubectl get nodes -o name` writes them; else a list of hosts.
Result<std::vector<std::string>> expected_nodes(const std::string& wish) {
  constexpr std::size_t kListLimit = 1u << 20;
  std::string text = wish;
  if (wish.starts_with('@')) {
    SCANKIT_TRY(text, read_whole_file(wish.substr(1), kListLimit, Accept::FilesAndPipes));
  }
  SCANKIT_TRY(std::vector<std::string> names, expanded_hosts(text));
  for (std::string& name : names)
    if (name.starts_with("node/")) name.erase(0, 5);
  return names;
}

std::optional<std::string> variable(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace

Result<FleetReport> report_of(const std::string& folder, const std::vector<std::string>& expected) {
  const Speaking facts_are_english(nullptr);  // what is for people is said anew
  SCANKIT_TRY(auto collected, collect(folder));
  collected.expected = expected;
  return merged(collected);
}

int tell(const FleetReport& report, const ShowOptions& options) {
  const int status = exit_status_of(report, options.fail_on);
  const std::string format = options.json ? "json" : format_on_stdout(options.reports).value_or("text");
  if (format == "text") {
    const TextStyle style{.color = wants_color(options.color, ::isatty(STDOUT_FILENO) != 0, variable),
                          .ascii = !locale_is_utf8(variable),
                          .verbose = options.verbose};
    std::cout << text_report(report, style);
  } else {
    std::cout << rendered(format, report, status);
  }
  const int files = write_report_files(
      options.reports, [&](const std::string& wanted) { return rendered(wanted, report, status); });
  return files != kExitClean ? files : status;
}

int run_report(const ReportOptions& options) {
  const auto expected = expected_nodes(options.expect);
  if (!expected) {
    complain(expected.error());
    return kExitUsage;
  }
  auto report = report_of(options.folder, *expected);
  if (!report) {
    complain(report.error());
    return kExitUsage;
  }
  return tell(*report, options.show);
}

}  // namespace scankit::fleet

// SPDX-License-Identifier: Apache-2.0
#include "doctor/cli/reports.h"

#include <algorithm>
#include <set>

#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/cli/commands.h"

namespace scankit {

ReportWish parse_report(const std::string& wish) {
  const auto equals = wish.find('=');
  return {wish.substr(0, equals), wish.substr(equals + 1)};
}

std::optional<std::string> format_on_stdout(const std::vector<std::string>& wishes) {
  for (const std::string& wish : wishes)
    if (const ReportWish parsed = parse_report(wish); parsed.path == "-") return parsed.format;
  return std::nullopt;
}

std::string report_clash(const std::vector<std::string>& wishes, bool json) {
  std::set<std::string> paths;
  for (const std::string& wish : wishes) {
    const ReportWish parsed = parse_report(wish);
    if (json && parsed.path == "-")
      return say("--report {} and --json both want standard output: name a file for one of them", wish);
    const std::string path = parsed.path == "-" ? "-" : path_normalize(parsed.path);
    if (!paths.insert(path).second)
      return path == "-" ? say("two reports want standard output: name a file for each")
                         : say("two reports want {}: name a file for each", path);
  }
  return "";
}

int write_reports(const Diagnosis& diagnosis, const std::vector<std::string>& wishes,
                  const SinkOptions& options) {
  int status = kExitClean;
  for (const std::string& wish : wishes) {
    const ReportWish parsed = parse_report(wish);
    if (parsed.path == "-") continue;
    const auto written = write_file_atomically(parsed.path, diagnosis.rendered(parsed.format, options));
    if (written) continue;
    complain(written.error());
    status = std::max(status, exit_status_of(written.error()));
  }
  return status;
}

}  // namespace scankit

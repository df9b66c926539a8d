// SPDX-License-Identifier: Apache-2.0
#include "doctor/cli/reports.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <set>
#include <utility>

#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/cli/commands.h"
#include "doctor/report/escape.h"
#include "doctor/report/text.h"

namespace scankit::cli {

namespace {

std::optional<std::string> variable(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace

// `wish` has passed report_problem().
ReportRequest parse_report(const std::string& wish) {
  const auto equals = wish.find('=');
  return {wish.substr(0, equals), wish.substr(equals + 1)};
}

std::string format_names(const std::vector<std::string_view>& formats) {
  std::string names;
  for (const std::string_view format : formats) names += (names.empty() ? "" : ", ") + std::string(format);
  return names;
}

std::string report_problem(const std::string& wish, const std::vector<std::string_view>& formats) {
  const std::string known = format_names(formats);
  const auto equals = wish.find('=');
  const std::string format = wish.substr(0, equals);
  if (equals == std::string::npos || equals + 1 == wish.size())
    return say("\"{}\" is not FORMAT=FILE; the formats are {}", wish, known);
  if (std::ranges::find(formats, format) != formats.end()) return "";
  const std::string near = nearest_word(format, {formats.begin(), formats.end()});
  return near.empty()
             ? say("unknown report format \"{}\"; choose from {}", format, known)
             : say("unknown report format \"{}\"; did you mean {}? (choose from {})", format, near, known);
}

std::optional<std::string> format_on_stdout(const std::vector<std::string>& wishes) {
  for (const std::string& wish : wishes)
    if (const ReportRequest parsed = parse_report(wish); parsed.path == "-") return parsed.format;
  return std::nullopt;
}

// Paths are compared lexically: two names of one file by way of a link are not noticed.
std::string report_clash(const std::vector<std::string>& wishes, bool json) {
  std::set<std::string> paths;
  for (const std::string& wish : wishes) {
    const ReportRequest parsed = parse_report(wish);
    if (json && parsed.path == "-")
      return say("--report {} and --json both write to standard output: give a file for one of them", wish);
    const std::string path = parsed.path == "-" ? "-" : path_normalize(parsed.path);
    if (!paths.insert(path).second)
      return path == "-" ? say("two reports write to standard output: give a file for each")
                         : say("two reports write to {}: give a file for each", path);
  }
  return "";
}

int write_report_files(const std::vector<std::string>& wishes,
                       const std::function<std::string(const std::string& format)>& rendered) {
  int status = kExitClean;
  for (const std::string& wish : wishes) {
    const ReportRequest parsed = parse_report(wish);
    if (parsed.path == "-") continue;
    const auto written = write_output(parsed.path, rendered(parsed.format));
    if (written) continue;
    report_error(written.error());
    status = std::max(status, exit_status_of(written.error()));
  }
  return status;
}

report::TextStyle text_style(const ShowOptions& options) {
  return {.color = report::wants_color(options.color, ::isatty(STDOUT_FILENO) != 0, variable),
          .ascii = report::wants_ascii(variable),
          .verbose = options.verbose,
          .quiet = options.quiet};
}

int show(const report::Views& views, const ShowOptions& options, const std::vector<Message>& notes) {
  const auto wanted = format_on_stdout(options.reports);
  if (wanted || options.json) {
    std::cout << report::render(wanted.value_or("json"), views, options.verbose);
  } else {
    const report::TextStyle style = text_style(options);
    if (!options.quiet)
      for (const Message& note : notes) std::cout << report::plain(tr(note), style.ascii) << "\n";
    std::cout << views.text(style);
  }
  return write_report_files(options.reports, [&](const std::string& format) {
    return report::render(format, views, options.verbose);
  });
}

}  // namespace scankit::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doctor/base/message.h"
#include "doctor/report/document.h"

namespace CLI {
class App;
}
// How an answer reaches the user: as text, JSON, and the FORMAT=FILE wishes of --report.

namespace scankit::cli {

struct ShowOptions {
  bool json = false;
  std::vector<std::string> reports;  // "FORMAT=FILE"
  std::string fail_on = "error", color = "auto";
  bool verbose = false, quiet = false;
};
// Adds --json and --report.
void add_report_options(CLI::App& command, ShowOptions& options);
// Adds --json, --report, --fail-on, --color, -v and -q. `status` is the exit status that --fail-on
// decides about; kExitClean leaves --fail-on out.
void add_show_options(CLI::App& command, ShowOptions& options, int status);
void add_look_options(CLI::App& command, ShowOptions& options);  // of these --color, -v and -q
void check_show_options(const ShowOptions& options);  // throws CLI::ValidationError where they clash

// What --color, -v and -q, the terminal and the locale make of a text on standard output.
report::TextStyle text_style(const ShowOptions& options);

// Prints the answer, writes the reports, and returns the exit status of printing and writing alone. At most one thing is printed
// on standard output: a report that asked for it, the JSON or the text. The notes belong to the text alone.
int show(const report::Views& views, const ShowOptions& options, const std::vector<Message>& notes = {});

struct ReportRequest {
  std::string format, path;
};
ReportRequest parse_report(const std::string& wish);
std::string format_names(const std::vector<std::string_view>& formats);  // "text, json"
// What is wrong with a wish for one of `formats`, as a sentence; "" if nothing is.
std::string report_problem(const std::string& wish, const std::vector<std::string_view>& formats);

// The format of the report that goes to standard output, if there is one.
std::optional<std::string> format_on_stdout(const std::vector<std::string>& wishes);

// Why the wishes cannot all be met, in one line; "" if they can. `json`: standard output is
// already taken.
std::string report_clash(const std::vector<std::string>& wishes, bool json);

// Writes the reports that go to files, as `rendered` makes them. Every one is tried, so that a full disk
// does not cost the others. Returns the exit status for what went wrong.
int write_report_files(const std::vector<std::string>& wishes,
                       const std::function<std::string(const std::string& format)>& rendered);

}  // namespace scankit::cli

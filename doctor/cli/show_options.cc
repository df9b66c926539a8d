// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>

#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "doctor/cli/reports.h"

namespace scankit {
namespace {

std::string check_report(const std::string& wish) { return report_problem(wish, report_formats()); }

}  // namespace

void add_show_options(CLI::App& command, ShowOptions& options, int status) {
  command.add_flag("--json", options.json, say("print JSON on standard output"));
  command
      .add_option(
          "--report", options.reports,
          say("also write a report to FILE (- for standard output, instead of the text); repeat for several; "
              "formats: {}",
              format_names(report_formats())))
      ->type_name("FORMAT=FILE")
      ->check(CLI::Validator(check_report, ""));
  if (status != kExitClean)
    command
        .add_option("--fail-on", options.fail_on,
                    say("lowest severity that makes the exit status {} [default: error]", status))
        ->check(CLI::IsMember({"error", "warning", "note", "never"}));
  command.add_option("--color", options.color, say("when to use colour [default: auto]"))
      ->check(CLI::IsMember({"auto", "always", "never"}));
  command.add_flag("-v,--verbose", options.verbose,
                   say("show all evidence, every copy and every check that passed"));
  command
      .add_flag("-q,--quiet", options.quiet, say("print only the verdict and the command that repairs it"))
      ->excludes("--verbose");
}

void check_show_options(const ShowOptions& options) {
  if (const std::string clash = report_clash(options.reports, options.json); !clash.empty())
    throw CLI::ValidationError(clash);
}

}  // namespace scankit

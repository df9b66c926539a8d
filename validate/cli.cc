// SPDX-License-Identifier: Apache-2.0
#include "validate/cli.h"

#include <re2/re2.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "doctor/command_line/command_line.h"
#include "validate/command.h"

// The command line of `scankit validate`: options, groups, help texts and examples.
namespace scankit::validate {
namespace {

// Torch's names of devices, and "all".
std::string device_problem(const std::string& device) {
  static const RE2 known("cpu|cuda|cuda:[0-9]{1,3}|all");
  if (RE2::FullMatch(device, known)) return "";
  return say("{} is not cpu, cuda, cuda:N or all", device);
}

// The three groups of --help.
void add_inputs(CLI::App& command, Options& options) {
  begin_group(command, group_of_input());
  command
      .add_option(
          "--python", options.python,
          say("the Python whose module is validated [default: $VIRTUAL_ENV, ./.venv, $CONDA_PREFIX, PATH]"))
      ->type_name("PATH");
  command.add_option("--module", options.module, say("module name, or the path of a module file"))
      ->type_name("NAME|PATH")
      ->capture_default_str();
  command
      .add_option(
          "--against", options.against,
          say("a second module, by name or path: validated too, and timed alternately with the first"))
      ->type_name("NAME|PATH");
  command
      .add_option("--upstream-tests", options.upstream_tests,
                  say("also run this file of mamba_ssm's own tests with the environment's pytest"))
      ->type_name("FILE");
  command
      .add_flag("--commented-parameters", options.commented_parameters,
                say("also run the parameters that are commented out in --upstream-tests"))
      ->needs("--upstream-tests");
  command
      .add_option("--baseline", options.baseline,
                  say("JSON of an earlier run; fail if a pass has become slower"))
      ->type_name("FILE");
}

void add_cases(CLI::App& command, Options& options) {
  begin_group(command, say("Cases"));
  auto* quick =
      command.add_flag("--quick", options.quick, say("run the short list of cases; this is the default"));
  command.add_flag("--full", options.full, say("run the short list and hundreds of random cases"))
      ->excludes(quick);
  command.add_option("--device", options.device, say("cpu, cuda (every GPU), cuda:N (one of them) or all"))
      ->type_name("DEVICE")
      ->check(CLI::Validator(device_problem, ""))
      ->capture_default_str();
  command
      .add_option("--seed", options.seed,
                  say("repeat a run with the same data and, with --full, the same shapes"))
      ->type_name("N");
  command.add_option("--case", options.only, say("run only this case; repeat for several"))
      ->type_name("ID")
      ->allow_extra_args(false);
  command
      .add_option("--timeout", options.timeout,
                  say("time limit of the whole run [default: 600; with --full 7200]"))
      ->type_name("SECONDS")
      ->check(CLI::Range(1, 1000000));
  command.add_flag("--deterministic", options.deterministic,
                   say("fail if two equal calls differ in any bit"));
  command.add_flag("--no-timing", options.no_timing, say("do not measure speed"));
  command.add_flag("--import", options.import_foreign,
                   say("import as root even files that belong to another user"));
  command.add_flag("--list-cases", options.list_cases, say("print the cases as JSON lines and run nothing"));
}

void add_test(CLI::App& command, Options& options) {
  auto* test = command.add_option(
      "--test", options.test,
      say("run this Python file and nothing else, with pytest if it contains pytest tests"));
  test->type_name("FILE");
  for (const char* other : {"--module", "--against", "--upstream-tests", "--baseline", "--quick", "--full",
                            "--device", "--seed", "--case", "--deterministic", "--no-timing", "--list-cases"})
    test->excludes(other);
}

void add_outputs(CLI::App& command, Options& options) {
  begin_group(command, group_of_output());
  cli::add_report_options(command, options.show);
  command.add_flag("-q,--quiet", options.show.quiet, say("print only the verdict"))->excludes("--json");
}

}  // namespace

void add_validate_commands(CLI::App& app, int& exit_status) {
  auto* command = app.add_subcommand("validate", say("check that the results of an installed module are "
                                                     "correct: forward and every gradient against fp64"));
  note(*command,
       {.examples = {"scankit validate", "scankit validate --full --device cuda",
                     "scankit validate --json --seed 7", "scankit validate --test tests/smoke.py",
                     "scankit validate --against ./selective_scan_cuda.so --report html=report.html"},
        .statuses = {{kExitClean, say("passed")},
                     {kExitUsage, say("usage error")},
                     {kExitInconclusive, say("inconclusive")},
                     {kExitValidationFailed, say("wrong results, or slower than the baseline allows")}},
        .trailing = {}});
  const auto options = std::make_shared<Options>();
  add_inputs(*command, *options);
  add_cases(*command, *options);
  add_test(*command, *options);
  add_outputs(*command, *options);
  command->callback([options, &exit_status] { exit_status = validate_command(*options); });
}

}  // namespace scankit::validate

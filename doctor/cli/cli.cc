// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/cli/commands.h"
#include "doctor/cli/reports.h"
#include "doctor/command_line/command_line.h"
#include "doctor/matrix/places.h"
#include "doctor/model/redact.h"

namespace scankit::cli {
namespace {

// For CLI11, which calls a validator with the value and takes "" as valid.
std::string check_report(const std::string& wish) { return report_problem(wish, report::report_formats()); }

}  // namespace

void add_look_options(CLI::App& command, ShowOptions& options) {
  command.add_option("--color", options.color, say("when to use colour [default: auto]"))
      ->check(CLI::IsMember({"auto", "always", "never"}));
  command.add_flag("-v,--verbose", options.verbose,
                   say("show all evidence, every copy, every check that passed and all facts of the GPUs"));
  command
      .add_flag("-q,--quiet", options.quiet, say("print only the verdict and the command that repairs it"))
      ->excludes("--verbose");
}

void add_report_options(CLI::App& command, ShowOptions& options) {
  command.add_flag("--json", options.json, say("print JSON on standard output"));
  command
      .add_option(
          "--report", options.reports,
          say("also write a report to FILE (- for standard output, instead of the text); repeat for several; "
              "formats: {}",
              format_names(report::report_formats())))
      ->type_name("FORMAT=FILE")
      ->allow_extra_args(false)
      ->check(CLI::Validator(check_report, ""));
}

void add_show_options(CLI::App& command, ShowOptions& options, int status) {
  add_report_options(command, options);
  if (status != kExitClean)
    command
        .add_option("--fail-on", options.fail_on,
                    say("lowest severity that makes the exit status {} [default: error]", status))
        ->check(CLI::IsMember({"error", "warning", "note", "never"}));
  add_look_options(command, options);
}

void check_show_options(const ShowOptions& options) {
  if (const std::string clash = report_clash(options.reports, options.json); !clash.empty())
    throw CLI::ValidationError(clash);
}

namespace {

// A module name is a dotted identifier. Users write several as "a,b" or by repeating the option; CLI11
// has split "a,b" at the commas before this is called. Returns what is wrong, or "".
std::string check_module(const std::string& name) {
  bool start = true;
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    const bool fits = letter || (!start && ((c >= '0' && c <= '9') || c == '.'));
    if (!fits) return say("\"{}\" is not a valid module name", name);
    start = c == '.';
  }
  return start ? say("expected a module name") : "";
}

// Options that doctor and snapshot share; --python is not among them, because doctor takes several.
void add_environment_options(CLI::App& command, EnvironmentOptions& options) {
  command.add_option("--module", options.modules, say("module under diagnosis; repeat for several"))
      ->type_name("NAME")
      ->delimiter(',')
      ->check(CLI::Validator(check_module, ""));
  command
      .add_option("--sources", options.sources,
                  say("sources to be built [default: the current directory, if it has a build file]"))
      ->type_name("DIR");
  command.add_option("--timeout", options.timeout_s, say("time limit of each import [default: 60]"))
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 86400.0));
}

// "sm_90" or "sm_80..sm_120", one or both of whose ends may be missing.
std::string gpu_range_problem(const std::string& text) {
  const auto to = text.find("..");
  if (to == std::string::npos) return probes::gpu_name_problem(text);
  for (const std::string& end : {text.substr(0, to), text.substr(to + 2)})
    if (const std::string problem = end.empty() ? "" : probes::gpu_name_problem(end); !problem.empty())
      return problem;
  return "";
}

// The GPUs that names and ranges mean. A single name need not be a known one: chips come faster than tables.
std::vector<std::string> gpus_in(const std::vector<std::string>& wanted) {
  std::vector<std::string> gpus;
  for (const std::string& one : wanted) {
    if (one.find("..") == std::string::npos) {
      gpus.push_back(one);
      continue;
    }
    const auto range = matrix::values_of_axis("--gpu", one, matrix::known_gpus());
    if (!range) throw CLI::ValidationError(say("{}; {}", range.error().message, range.error().hint));
    gpus.insert(gpus.end(), range->begin(), range->end());
  }
  return gpus;
}

// The facts about a machine that are replaced by a description.
void add_target_options(CLI::App& command, probes::TargetDescription& target) {
  command
      .add_option("--gpu", target.gpus,
                  say("check for these GPUs instead of the installed ones: sm_90,sm_80..sm_86, or none"))
      ->type_name("ARCH")
      ->delimiter(',')
      ->check(CLI::Validator(gpu_range_problem, ""));
  command
      .add_option("--driver", target.driver,
                  say("check for this driver version instead of the installed one, such as 570.86"))
      ->type_name("VERSION")
      ->check(CLI::Validator(probes::driver_version_problem, ""));
}

// What must be there for a healthy answer.
void add_expectations(CLI::App& command, DoctorOptions& options) {
  command
      .add_option("--require", options.environment.required,
                  say("modules or packages that must be installed; fail if one is missing"))
      ->type_name("NAMES")
      ->delimiter(',');
  command.add_flag("--allow-empty", options.allow_empty,
                   say("exit with 0 if there is nothing to check [default: exit with 4]"));
}

// Both options are callbacks on one value; without either, the default of EnvironmentOptions applies.
void add_import_options(CLI::App& command, DoctorOptions& options) {
  auto* never = command.add_flag_callback(
      "--no-import", [&options] { options.environment.imports = probes::ImportPolicy::Never; },
      say("read files only, run nothing"));
  command
      .add_flag_callback(
          "--import", [&options] { options.environment.imports = probes::ImportPolicy::Always; },
          say("import as root even files that belong to another user"))
      ->excludes(never);
}

// What to look at in place of the user's environment, and which other options then make no sense. The
// combinations are also part of the help (combinations() in help.cc).
void add_other_inputs(CLI::App& command, DoctorOptions& options) {
  command
      .add_option("--root", options.environment.root,
                  say("look at an unpacked root file system; --python is a path inside it"))
      ->type_name("DIR")
      ->excludes("--import");
  command
      .add_option("--so", options.environment.so,
                  say("examine a shared library, a wheel or a directory of them; nothing is executed"))
      ->type_name("PATH")
      ->excludes("--all")
      ->excludes("--module")
      ->excludes("--sources")
      ->excludes("--import");
  command
      .add_option("--from", options.snapshots,
                  say("diagnose a stored snapshot (- for standard input); repeat for several"))
      ->type_name("SNAPSHOT")
      ->allow_extra_args(false);
  command
      .add_option("--log", options.log,
                  say("explain this error log (- for standard input), with or without --from"))
      ->type_name("FILE");
  // A stored snapshot or a log is the whole input: nothing of this machine is looked at.
  for (const char* live :
       {"--all", "--python", "--module", "--sources", "--timeout", "--no-import", "--import", "--root"})
    for (const char* stored : {"--from", "--log"})
      command.get_option(stored)->excludes(command.get_option(live));
  for (const char* one : {"--so", "--require"})
    command.get_option("--log")->excludes(command.get_option(one));
}

// Ranges of releases to judge the files of --so for, instead of one environment. --python and --gpu are two more.
void add_axis_options(CLI::App& command, AxisOptions& axes) {
  auto* torch = command.add_option(
      "--torch", axes.torch,
      say("tell for which torch releases the files of --so work, such as 2.4..2.11 or all; --python then "
          "takes versions, such as 3.9..3.13"));
  torch->type_name("RANGE")->needs(command.get_option("--so"));
  command
      .add_option("--cuda", axes.cuda,
                  say("with --torch: also check against CUDA releases, such as 11.8..13.0"))
      ->type_name("RANGE")
      ->needs(torch);
  command
      .add_option("--glibc", axes.glibc,
                  say("with --torch: also check against glibc releases, such as 2.17..2.28"))
      ->type_name("RANGE")
      ->needs(torch);
  for (const char* other :
       {"--from", "--log", "--root", "--timeout", "--no-import", "--require", "--allow-empty", "--budget"})
    torch->excludes(command.get_option(other));
}

void add_snapshot_outputs(CLI::App& command, DoctorOptions& options) {
  auto* snapshot = command.add_option("--snapshot", options.snapshot,
                                      say("also write the facts behind the answer, for a later --from"));
  snapshot->type_name("FILE");
  command
      .add_flag("--with-exports", options.environment.with_exports,
                say("add the symbols of every library that import torch loads to --snapshot (some MB)"))
      ->needs(snapshot)
      ->excludes(command.get_option("--from"))
      ->excludes(command.get_option("--log"));
  command.add_flag("--redact", options.environment.redact, redact_help());
}

// What cannot be done for several environments at once, because it is one file or is about one of them.
void check_several(const DoctorOptions& options) {
  if (!options.axes.torch.empty())
    throw CLI::ValidationError(say("with --torch, give all versions in one --python, such as 3.9,3.11"));
  for (const auto& [given, name] : {std::pair{!options.show.reports.empty(), "--report"},
                                    {!options.snapshot.empty(), "--snapshot"},
                                    {!options.log.empty(), "--log"}})
    if (given)
      throw CLI::ValidationError(
          say("{} is for one environment; run `scankit doctor` once for each, or use --json", name));
}

int run_as_asked(DoctorOptions& options) {
  if (options.pythons.size() + options.snapshots.size() > 1) {
    check_several(options);
    return run_doctors(options);
  }
  if (!options.pythons.empty()) options.environment.python = options.pythons.front();
  if (!options.snapshots.empty()) options.from = options.snapshots.front();
  return options.axes.torch.empty() ? run_doctor(options) : run_matrix(options);
}

void add_doctor(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<DoctorOptions>();
  CLI::App* command = app.add_subcommand("doctor", say("find out why an import fails"));
  note(*command, {.examples = {"scankit doctor", "scankit doctor --python .venv/bin/python --json",
                               "scankit doctor --log build.log", "scankit doctor --so dist/ --gpu sm_90",
                               "scankit doctor --so dist/ --torch 2.4..2.11 --python 3.9..3.13"},
                  .statuses = {{kExitClean, say("healthy")},
                               {kExitFindings, say("broken")},
                               {kExitUsage, say("usage error")},
                               {kExitInconclusive, say("inconclusive, or nothing to check")}},
                  .trailing = {}});
  begin_group(*command, group_of_input());
  command
      ->add_option(
          "--python", options->pythons,
          say("the Python to look at; repeat for several [default: $VIRTUAL_ENV, ./.venv, $CONDA_PREFIX, "
              "PATH]"))
      ->type_name("PATH")
      ->allow_extra_args(false);
  add_environment_options(*command, options->environment);
  options->environment.linked = true;
  command->add_flag("--all", options->environment.all,
                    say("audit every compiled extension of every package"));
  add_expectations(*command, *options);
  add_import_options(*command, *options);
  add_other_inputs(*command, *options);
  add_budget_option(*command, options->environment.budget)
      ->excludes(command->get_option("--from"))
      ->excludes(command->get_option("--log"));
  add_target_options(*command, options->target);
  add_axis_options(*command, options->axes);
  begin_group(*command, group_of_output());
  add_snapshot_outputs(*command, *options);
  for (const char* other : {"--snapshot", "--redact"})
    command->get_option("--torch")->excludes(command->get_option(other));
  add_show_options(*command, options->show, kExitFindings);
  // The options live as long as the callback, which CLI11 owns. They are shared because the add_
  // functions bind to them.
  command->callback([options, &exit_status] {
    check_show_options(options->show);
    options->target.gpus = gpus_in(options->target.gpus);
    exit_status = run_as_asked(*options);
  });
}

void add_snapshot(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<SnapshotOptions>();
  // A snapshot runs nothing unless --import asks for it, and even then never another user's code as root.
  options->environment.imports = probes::ImportPolicy::Never;
  options->environment.foreign_too = false;
  options->environment.linked = true;
  CLI::App* command =
      app.add_subcommand("snapshot", say("write the facts as JSON, without running anything in the "
                                         "environment"));
  note(*command, {.examples = {"scankit snapshot --out snapshot.json",
                               "scankit snapshot --redact --import --out snapshot.json"},
                  .statuses = {},
                  .trailing = {}});
  begin_group(*command, group_of_input());
  command
      ->add_option("--python", options->environment.python,
                   say("the Python to look at [default: $VIRTUAL_ENV, ./.venv, $CONDA_PREFIX, PATH]"))
      ->type_name("PATH");
  add_environment_options(*command, options->environment);
  auto* never = command->add_flag_callback(
      "--no-import", [options] { options->environment.imports = probes::ImportPolicy::Never; },
      say("run nothing; this is the default"));
  command
      ->add_flag_callback(
          // doctor's --import is stronger: it means ImportPolicy::Always.
          "--import", [options] { options->environment.imports = probes::ImportPolicy::IfOursToRun; },
          say("also import, as doctor does"))
      ->excludes(never);
  begin_group(*command, group_of_output());
  command->add_flag("--redact", options->environment.redact, redact_help());
  command->add_flag(
      "--with-exports", options->environment.with_exports,
      say("add the symbols of every library that import torch loads (some MB), for --so with --from"));
  command->add_option("--out", options->out, say("file to write [default: standard output]"))
      ->type_name("FILE");
  command->callback([options, &exit_status] { exit_status = run_snapshot(*options); });
}

void add_explain(CLI::App& app, int& exit_status) {
  struct Choice {
    std::vector<std::string> words;
    bool list = false;
  };
  const auto choice = std::make_shared<Choice>();
  CLI::App* command =
      app.add_subcommand("explain", say("explain a cause, or find the cause of an error message"));
  note(*command,
       {.examples = {"scankit explain", "scankit explain torch_version_mismatch",
                     "scankit explain undefined symbol",
                     "scankit explain 'ImportError: libcudart.so.12: cannot open shared object file'"},
        .statuses = {},
        .trailing = {}});
  auto* cause =
      command->add_option("cause", choice->words,
                          say("a cause as doctor prints it, words to search for, or a pasted error message"));
  command->add_flag("--list", choice->list, say("list all causes, as without an argument"))->excludes(cause);
  // Several words are one query: "scankit explain undefined symbol".
  command->callback(
      [choice, &exit_status] { exit_status = run_explain(CLI::detail::join(choice->words, " ")); });
}

void add_selftest(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<SelftestOptions>();
  CLI::App* command = app.add_subcommand(
      "selftest", say("inject real faults in a scratch directory and check that doctor finds each of them"));
  note(*command, {.examples = {"scankit selftest", "scankit selftest --python .venv/bin/python --keep"},
                  .statuses = {},
                  .trailing = {}});
  command
      ->add_option("--python", options->python,
                   say("the Python to inject them for [default: $VIRTUAL_ENV, ./.venv, $CONDA_PREFIX, PATH]"))
      ->type_name("PATH");
  add_report_options(*command, options->show);
  command->add_flag("--keep", options->keep, say("keep the directory with the faults"));
  command->callback([options, &exit_status] {
    check_show_options(options->show);
    exit_status = run_selftest_command(*options);
  });
}

}  // namespace

// The return value is for further constraints of the caller, such as excludes().
CLI::Option* add_budget_option(CLI::App& command, std::string& budget) {
  return command
      .add_option("--budget", budget,
                  say("time limit of the whole run, such as 20s; checks that do not finish in time are "
                      "skipped"))
      ->type_name("TIME")
      ->check(CLI::Validator(
          [](const std::string& text) {
            return parse_duration(text)
                       ? ""
                       : say("\"{}\" is not a valid time; write it as 20s, 1.5m or 500ms", text);
          },
          ""));
}

void add_doctor_commands(CLI::App& app, int& exit_status) {
  add_doctor(app, exit_status);
  add_snapshot(app, exit_status);
  add_explain(app, exit_status);
  add_selftest(app, exit_status);
}

}  // namespace scankit::cli

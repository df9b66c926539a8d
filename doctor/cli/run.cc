// SPDX-License-Identifier: Apache-2.0
#include "doctor/cli/run.h"

#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>

#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/base/tool_version.h"
#include "doctor/checks/check.h"
#include "doctor/command_line/command_line.h"
#include "doctor/logs/explainer.h"
#include "doctor/model/redact.h"
#include "doctor/report/doctor_document.h"
#include "doctor/report/escape.h"
#include "doctor/report/progress.h"
#include "doctor/report/text.h"
#include "doctor/run/command.h"
#include "doctor/run/interpreters.h"

namespace scankit::cli {
namespace {

std::optional<std::string> own_variable(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// The program that ran the command's work in a container or on another machine, where nothing here is about it;
// "" if there was none. It may be below a shell or make.
std::string runner_elsewhere(const RunOptions& options, const run::CommandRun& run) {
  const auto typed = run::launched(options.command);
  for (const auto* programs : {&typed, &run.programs})
    if (const auto found = std::ranges::find_if(*programs, run::runs_elsewhere); found != programs->end())
      return *found;
  return "";
}

// What the command printed, as the reader of error logs sees it.
Log log_of(const RunOptions& options, const run::CommandRun& run) {
  Log log = logs::explain_text(run.output.text);
  log.source =
      options.log.empty() ? say("output of {}", path_basename(options.command.front())) : options.log;
  log.alone = true;
  name_modules(log);
  excuse_own_shell(options.command, run, log);
  return log;
}

// Makes this process what the interpreter was: its variables decide what Python and the loader find.
void take_place_of(const run::SeenInterpreter& interpreter) {
  if (!interpreter.environment.empty()) {
    ::clearenv();
    for (const std::string& entry : interpreter.environment)
      if (const auto equals = entry.find('='); equals != std::string::npos)
        ::setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
  }
  if (!interpreter.directory.empty()) (void)!::chdir(interpreter.directory.c_str());
}

// What is known of the place where the command failed.
struct Examined {
  Facts facts;
  std::string note;  // why nothing but the output is known; "" otherwise
};

// Which interpreter to examine: "" for the doctor's own choice, as for make; or why none can be.
struct Choice {
  std::optional<run::SeenInterpreter> interpreter;
  std::string note;
};

Choice choose_interpreter(const RunOptions& options, const run::CommandRun& run) {
  if (!options.python.empty()) return {};
  std::vector<run::SeenInterpreter> seen = run.interpreters;
  if (auto own = run::interpreter_of_command(options.command);
      own && std::ranges::find(seen, own->path, &run::SeenInterpreter::path) == seen.end())
    seen.push_back(std::move(*own));
  const std::string runner = runner_elsewhere(options, run);
  if (seen.empty() && !runner.empty())
    return {std::nullopt, say("the command ran in a container or on another machine: only its output was "
                              "examined; to examine that place too: {}",
                              run::examined_there(runner))};
  if (std::ranges::any_of(seen, &run::SeenInterpreter::other_root))
    return {std::nullopt,
            say("the command ran in a container or on another machine: only its output was examined")};
  Choice choice{run::failing_interpreter(run.output.text, seen), ""};
  if (!choice.interpreter && !seen.empty())
    choice.note = say("{} does not exist any more: only the output was examined", seen.front().path);
  return choice;
}

// The facts to join with the log.
Examined examine(const RunOptions& options, const run::CommandRun& run,
                 const std::vector<std::string>& modules, probes::ImportPolicy imports) {
  Choice choice = choose_interpreter(options, run);
  Examined result;
  result.facts.snapshot.tool_version = kToolVersion;
  result.note = std::move(choice.note);
  if (!result.note.empty()) return result;
  EnvironmentOptions environment;
  environment.linked = true;
  environment.python = choice.interpreter ? choice.interpreter->path : options.python;
  environment.modules = modules;
  environment.imports = imports;
  environment.foreign_too = false;
  environment.redact = options.redact;
  if (choice.interpreter) take_place_of(*choice.interpreter);
  auto facts = gather(environment);
  if (facts)
    result.facts = *std::move(facts);
  else
    result.note = say("only the output was examined: {}", facts.error().message);
  return result;
}

// Reports are written after the directory may have changed.
std::vector<std::string> absolute_wishes(const RunOptions& options) {
  std::vector<std::string> wishes;
  for (const std::string& wish : options.show.reports) {
    const ReportRequest request = parse_report(wish);
    wishes.push_back(request.format + "=" + path_join(current_directory(), request.path));
  }
  if (!options.json.empty()) wishes.push_back("json=" + path_join(current_directory(), options.json));
  return wishes;
}

// A file that cannot be written is told before a command that may run for hours.
std::optional<Error> unwritable(const RunOptions& options) {
  std::vector<std::string> wishes = absolute_wishes(options);
  if (!options.log.empty()) wishes.push_back("log=" + path_join(current_directory(), options.log));
  for (const std::string& wish : wishes) {
    const std::string path = parse_report(wish).path;
    const std::string directory = path_dirname(path);
    if (::access(directory.c_str(), F_OK) != 0)
      return Error{Errc::NotFound,
                   message("cannot write {}: the directory {} does not exist", path, directory), ""};
    if (::access(path.c_str(), F_OK) == 0 ? ::access(path.c_str(), W_OK) != 0
                                          : ::access(directory.c_str(), W_OK | X_OK) != 0)
      return Error{Errc::PermissionDenied, message("cannot write {}: {}", path, std::strerror(errno)), ""};
  }
  return std::nullopt;
}

void write_log(const RunOptions& options, const run::CommandRun& run) {
  if (options.log.empty()) return;
  std::string text = run.output.text;
  if (options.redact) text = redacted(Error{Errc::Io, std::move(text), ""}, own_names()).message.english();
  if (const auto written = write_output(options.log, text); !written) report_error(written.error());
}

// How the answer is shown, decided before the environment changes to that of the interpreter.
struct Look {
  report::TextStyle style;
  std::vector<std::string> wishes;
};

void print_rule(const RunOptions& options, const run::CommandRun& run, const Look& look) {
  const std::string rule = look.style.ascii ? "----" : "────";
  const std::string name = path_basename(options.command.front());
  std::cerr << rule << " " << report::plain(say("scankit: {} {}", name, end_in_words(run)), look.style.ascii)
            << " " << rule << "\n";
}

void write_reports(const Report& report, const Look& look, int status) {
  write_report_files(look.wishes, [&](const std::string& format) {
    return report::render(format, report::doctor_views(report, status), look.style.verbose);
  });
}

// A failure that is to be explained.
struct Failure {
  const RunOptions& options;
  const run::CommandRun& run;
  Log log;
  RanCommand command;
  Look look;
};

// Redaction comes before judgement, so that no text of a finding can contain what was removed.
Report report_on(const Failure& failure, Examined examined) {
  Snapshot& snapshot = examined.facts.snapshot;
  snapshot.command = failure.command;
  snapshot.command->examined = snapshot.python.value.requested;
  if (failure.options.redact) snapshot = redacted(snapshot, own_names());
  logs::read_observations(snapshot);
  return checks::diagnose(std::move(snapshot));
}

void print_diagnosis(const Report& report, const std::string& note, const Look& look) {
  if (!note.empty()) std::cerr << report::plain(note, look.style.ascii) << "\n";
  std::cerr << report::doctor_text(report, look.style);
  write_reports(report, look, kExitFindings);
}

void explain_error(const Failure& failure) {
  print_rule(failure.options, failure.run, failure.look);
  // Which package is missing is in the output and in the files: importing torch would cost seconds and add
  // nothing.
  Log log = failure.log;
  const bool missing = !log.hits.empty() && log.hits.front().cause == "missing_python_dependency";
  Examined examined = examine(failure.options, failure.run, modules_of_error(log),
                              missing ? probes::ImportPolicy::Never : failure.options.imports);
  log.alone = !examined.note.empty();
  examined.facts.snapshot.log = Probed<Log>::of(std::move(log));
  const std::string note = examined.note;
  print_diagnosis(report_on(failure, std::move(examined)), note, failure.look);
}

// The files that were requested, for a failure of which only the output is examined.
void write_output_reports(const Failure& failure) {
  if (failure.look.wishes.empty()) return;
  Examined output;
  output.facts.snapshot.tool_version = kToolVersion;
  output.facts.snapshot.log = Probed<Log>::of(failure.log);
  write_reports(report_on(failure, std::move(output)), failure.look, kExitInconclusive);
}

// For a failure that is not one of the installation: a line, and the files.
void tell_no_fault(const Failure& failure, const std::string& line) {
  report::progress_note(line);
  write_output_reports(failure);
}

// A crash is one of the installation if importing one of the modules crashes or fails by itself, or if their
// files say so. Otherwise nobody is blamed.
void explain_crash(const Failure& failure) {
  const std::vector<std::string> modules = modules_of_crash(failure.run);
  if (modules.empty())
    return tell_no_fault(failure, tr(no_fault_line(failure.options.command, failure.run, failure.log)));
  print_rule(failure.options, failure.run, failure.look);
  Examined examined = examine(failure.options, failure.run, modules, failure.options.imports);
  const std::string note = examined.note;
  const Report report = report_on(failure, std::move(examined));
  if (root(report) != nullptr) return print_diagnosis(report, note, failure.look);
  const std::string line =
      failure.options.imports == probes::ImportPolicy::Never
          ? say("the last modules that were loaded are {}: their files have no fault", join(modules))
          : say("the last modules that were loaded are {}: they import without a crash, so a call crashed, "
                "and nothing points to the installation",
                join(modules));
  tell_no_fault(failure, line);
}

void explain_failure(const RunOptions& options, const run::CommandRun& run) {
  Look look{{.color = report::wants_color(options.show.color, ::isatty(STDERR_FILENO) != 0, own_variable),
             .ascii = report::wants_ascii(own_variable),
             .verbose = options.show.verbose,
             .quiet = options.show.quiet},
            absolute_wishes(options)};
  write_log(options, run);
  Log log = log_of(options, run);
  RanCommand command = command_facts(options.command, current_directory(), run, log);
  const Failure failure{options, run, std::move(log), std::move(command), std::move(look)};
  if (is_explained(options.command, run.output.text)) return write_output_reports(failure);
  if (run.within_line) std::cerr << "\n";
  switch (kind_of_failure(run, failure.log)) {
    case FailureKind::OfInstallation:
      return explain_error(failure);
    case FailureKind::Crash:
      return explain_crash(failure);
    case FailureKind::OfProgram:
      return tell_no_fault(failure, tr(no_fault_line(options.command, run, failure.log)));
  }
}

}  // namespace

int run_run(const RunOptions& options) {
  if (const auto problem = unwritable(options)) {
    report_error(*problem);
    return kExitUsage;
  }
  const auto result = run::run_command(options.command);
  if (const auto* failed = std::get_if<run::NotStarted>(&result)) {
    report_error(failed->error);
    return failed->status;
  }
  const auto& run = std::get<run::CommandRun>(result);
  // Who ended the command, or stopped reading what it says, knows why.
  if (run.status != 0 && !run.interrupted && !run.reader_gone) explain_failure(options, run);
  if (WIFEXITED(run.status)) return WEXITSTATUS(run.status);
  std::cerr.flush();
  end_like(run.status);
}

namespace {

// CLI11 must not see the user's command: its options are not ours.
std::vector<std::string> take_command(std::vector<std::string>& words) {
  const auto dashes = std::ranges::find(words, "--");
  if (words.empty() || words.front() != "run" || dashes == words.end()) return {};
  std::vector<std::string> command(dashes + 1, words.end());
  words.erase(dashes, words.end());
  return command;
}

void add_run_outputs(CLI::App& command, RunOptions& options) {
  command.add_option("--json", options.json, say("also write the diagnosis as JSON to FILE"))
      ->type_name("FILE");
  command
      .add_option("--report", options.show.reports,
                  say("also write the diagnosis to FILE; repeat for several; formats: {}",
                      format_names(report::report_formats())))
      ->type_name("FORMAT=FILE")
      ->check(CLI::Validator(
          [](const std::string& wish) { return report_problem(wish, report::report_formats()); }, ""));
  command
      .add_option("--log", options.log, say("also write the kept output of a command that failed to FILE"))
      ->type_name("FILE");
  command.add_flag("--redact", options.redact, redact_help());
  add_look_options(command, options.show);
}

// --json and --log take a file; `-` is the screen, which belongs to the command.
void check_run_files(const RunOptions& options) {
  std::vector<std::string> wishes = options.show.reports;
  if (!options.json.empty()) wishes.push_back("json=" + options.json);
  if (!options.log.empty()) wishes.push_back("log=" + options.log);
  for (const std::string& wish : wishes)
    if (parse_report(wish).path == "-")
      throw CLI::ValidationError(
          say("standard output belongs to the command: write to a file instead of - ({})", wish));
  if (const std::string clash = report_clash(wishes, false); !clash.empty())
    throw CLI::ValidationError(clash);
}

}  // namespace

void add_run_command(CLI::App& app, int& exit_status, std::vector<std::string>& words) {
  const auto options = std::make_shared<RunOptions>();
  options->command = take_command(words);
  CLI::App* command = app.add_subcommand("run", say("run a command as it is, and explain its failure"));
  note(*command,
       {.examples = {"scankit run -- python train.py", "scankit run -- torchrun --nproc-per-node 8 train.py",
                     "scankit run --json failure.json -- pip install mamba-ssm"},
        .statuses = {{kExitUsage, say("usage error, and the command was not started")},
                     {126, say("the command cannot be executed")},
                     {127, say("the command was not found; otherwise the status is the command's")}},
        .trailing = "-- <COMMAND>..."});
  begin_group(*command, group_of_input());
  command
      ->add_option("--python", options->python, say("the Python to diagnose [default: the one that failed]"))
      ->type_name("PATH");
  command->add_flag_callback(
      "--no-import", [options] { options->imports = probes::ImportPolicy::Never; },
      say("diagnose from files only, import nothing again"));
  begin_group(*command, group_of_output());
  add_run_outputs(*command, *options);
  // Words that are no options: most likely the command, without "--".
  const auto stray = std::make_shared<std::vector<std::string>>();
  command->add_option("words", *stray)->group("");
  command->callback([options, stray, &exit_status] {
    if (!stray->empty())
      throw CLI::ValidationError(say("write -- before the command: scankit run -- {}", shell_line(*stray)));
    if (options->command.empty())
      throw CLI::ValidationError(say("the command is missing: scankit run -- python train.py"));
    check_run_files(*options);
    exit_status = run_run(*options);
  });
}

}  // namespace scankit::cli

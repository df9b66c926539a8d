// SPDX-License-Identifier: Apache-2.0
#include "doctor/cli/run.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <iostream>

#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/base/tool_version.h"
#include "doctor/logs/explainer.h"
#include "doctor/model/redact.h"
#include "doctor/report/escape.h"
#include "doctor/report/progress.h"
#include "doctor/report/text.h"
#include "doctor/run/failing_interpreter.h"
#include "doctor/run/supervise.h"

namespace scankit {
namespace {

std::optional<std::string> own_variable(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// The signal that ended the command, also if a shell between us has turned it into 128 + N; 0 for none.
int signal_of(int status) {
  if (WIFSIGNALED(status)) return WTERMSIG(status);
  const int code = WEXITSTATUS(status);
  return code > 128 && code <= 128 + 31 ? code - 128 : 0;
}

// Signals by which a fault in native code ends a process.
bool is_crash(int number) {
  constexpr std::array kCrashes{SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE, SIGSYS};
  return std::ranges::find(kCrashes, number) != kCrashes.end();
}

// "exited with status 1", "was ended by signal 11 (Segmentation fault) in x.so"
std::string end_in_words(const CommandRun& run) {
  const int number = signal_of(run.status);
  if (number == 0) return say("exited with status {}", WEXITSTATUS(run.status));
  if (run.crashed_in.empty()) return say("was ended by signal {} ({})", number, ::strsignal(number));
  return say("was ended by signal {} ({}) in {}", number, ::strsignal(number), run.crashed_in);
}

// Commands that run what they are given on another machine or in a container: nothing here is about it.
bool runs_in_another_place(const RunOptions& options) {
  constexpr std::array kRunners{"docker", "podman",      "nerdctl",   "kubectl", "srun", "sbatch",
                                "ssh",    "singularity", "apptainer", "enroot",  "ray"};
  const std::string name = path_basename(options.command.front());
  return std::ranges::find(kRunners, name) != kRunners.end();
}

// What the command printed, and how it ended in the words of a shell, which the rules for logs know.
Log log_of(const RunOptions& options, const CommandRun& run) {
  std::string text = run.output;
  if (!text.empty() && text.back() != '\n') text += '\n';
  const Speaking english(nullptr);  // the rules are written for English
  if (signal_of(run.status) != 0) text += options.command.front() + " " + end_in_words(run) + "\n";
  Log log = explain_text(text);
  log.source = options.log.empty() ? say("output of {}", path_basename(options.command.front())) : options.log;
  log.alone = true;
  return log;
}

// The names by which the doctor knows the modules that the log blames, and for a crash the modules that the
// process had loaded last.
void name_modules(const CommandRun& run, Log& log) {
  const auto at_death = modules_at_death(run.crashed_in, run.interpreters);
  for (LogHit& hit : log.hits) {
    const bool crash = hit.cause == "import_crash" && hit.file.empty() && !run.crashed_in.empty();
    if (crash && !at_death.empty()) hit.file = at_death.front();
    if (const std::string module = module_of_file(hit.file); !module.empty()) hit.module = module;
  }
}

const LogHit* root_hit(const Log& log) {
  return log.hits.empty() || log.hits.front().role != "root" ? nullptr : &log.hits.front();
}

// The modules to look at: the one that the root error is about, or the candidates of a crash. Empty for the
// doctor's own choice.
std::vector<std::string> modules_to_look_at(const CommandRun& run, const Log& log) {
  std::vector<std::string> modules;
  const LogHit* root = root_hit(log);
  if (root == nullptr) return modules;
  if (!root->file.empty() && !module_of_file(root->file).empty()) modules.push_back(root->module);
  if (root->cause == "package_not_installed" && !root->module.empty()) modules.push_back(root->module);
  if (root->cause == "import_crash" && modules.empty())
    for (const std::string& file : modules_at_death(run.crashed_in, run.interpreters))
      if (const std::string module = module_of_file(file); !module.empty()) modules.push_back(module);
  return modules;
}

// Whether the failure can be one of the installation. A program's own exception and a failed assertion
// are not, and nothing is examined for them.
bool points_to_installation(const CommandRun& run, const Log& log) {
  const LogHit* root = root_hit(log);
  if (root != nullptr && !root->cause.empty()) return true;
  if (is_crash(signal_of(run.status))) return true;
  return std::ranges::any_of(log.unexplained, [](const LogLine& line) {
    return line.text.find("ImportError:") != std::string::npos ||
           line.text.find("ModuleNotFoundError:") != std::string::npos;
  });
}

// The one line about a failure of another kind.
std::string no_fault_line(const CommandRun& run, const Log& log) {
  if (run.memory_kills > 0)
    return say("the command {}: the kernel killed {} of its processes because memory ran out; nothing in the "
               "output points to the installation",
               end_in_words(run), run.memory_kills);
  if (const LogHit* root = root_hit(log))
    return say("the command {}: {}; nothing in the output points to the installation", end_in_words(run),
               tr(root->meaning));
  return say("the command {}; nothing in its output points to the installation", end_in_words(run));
}

// Makes this process what the interpreter was: its variables decide what Python and the loader find.
void take_place_of(const SeenInterpreter& interpreter) {
  if (!interpreter.environment.empty()) {
    ::clearenv();
    for (const std::string& entry : interpreter.environment)
      if (const auto equals = entry.find('='); equals != std::string::npos)
        ::setenv(entry.substr(0, equals).c_str(), entry.substr(equals + 1).c_str(), 1);
  }
  if (!interpreter.directory.empty()) (void)!::chdir(interpreter.directory.c_str());
}

struct Examined {
  Facts facts;
  std::string note;  // why nothing but the log is known
};

// The facts to join with the log. Nothing but the log, and why, if the interpreter is not one of this
// machine, or does not exist any more.
Examined examine(const RunOptions& options, const CommandRun& run, const Log& log) {
  Examined result;
  result.facts.snapshot.tool_version = kToolVersion;
  std::vector<SeenInterpreter> seen = run.interpreters;
  if (auto own = interpreter_of_command(options.command);
      own && std::ranges::find(seen, own->path, &SeenInterpreter::path) == seen.end())
    seen.push_back(std::move(*own));
  const bool away = std::ranges::any_of(seen, &SeenInterpreter::other_root) ||
                    (seen.empty() && runs_in_another_place(options));
  const auto interpreter =
      away && options.python.empty() ? std::nullopt : failing_interpreter(run.output, seen);
  if (away && options.python.empty()) {
    result.note = say("the command ran in a container or on another machine: only its output was examined");
    return result;
  }
  if (!interpreter && !seen.empty() && options.python.empty()) {
    result.note =
        say("{} does not exist any more: only the output was examined", printable(seen.front().path));
    return result;
  }
  EnvironmentOptions environment;
  environment.linked = true;
  environment.python = options.python;
  if (environment.python.empty() && interpreter) environment.python = interpreter->path;
  environment.modules = modules_to_look_at(run, log);
  environment.imports = options.imports;
  environment.foreign_too = false;
  environment.redact = options.redact;
  if (options.python.empty() && interpreter) take_place_of(*interpreter);
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
                   say("cannot write {}: the directory {} does not exist", path, directory), ""};
    if (::access(path.c_str(), F_OK) == 0 ? ::access(path.c_str(), W_OK) != 0
                                          : ::access(directory.c_str(), W_OK | X_OK) != 0)
      return Error{Errc::PermissionDenied, say("cannot write {}: {}", path, std::strerror(errno)), ""};
  }
  return std::nullopt;
}

void write_log(const RunOptions& options, const CommandRun& run) {
  if (options.log.empty()) return;
  std::string text = run.output;
  if (options.redact) text = redacted(Error{Errc::Io, std::move(text), ""}, own_names()).message;
  if (const auto written = write_output(options.log, text); !written) report_error(written.error());
}

// Everything below the output: one line that separates, the diagnosis, its files.
void print_diagnosis(const RunOptions& options, const CommandRun& run, Log log, const TextStyle& style) {
  const std::string name = path_basename(options.command.front());
  const std::string rule = style.ascii ? "---- " : "──── ";
  std::cerr << rule << plain(say("scankit: {} {}", name, end_in_words(run)), style.ascii) << " "
            << trimmed(rule) << "\n";
  const std::vector<std::string> wishes = absolute_wishes(options);
  name_modules(run, log);
  Examined examined = examine(options, run, log);
  Snapshot& snapshot = examined.facts.snapshot;
  log.alone = !examined.note.empty();
  snapshot.log = Probed<Log>::of(std::move(log));
  if (options.redact) {
    snapshot = redacted(snapshot, own_names());
    examined.facts.notes.clear();
  }
  read_observations(snapshot);
  const Diagnosis diagnosis(std::move(snapshot));
  if (!examined.note.empty()) std::cerr << plain(examined.note, style.ascii) << "\n";
  std::cerr << diagnosis.text([&](const Report& report) { return doctor_text(report, style); });
  const SinkOptions sink{.verbose = style.verbose, .exit_status = kExitFindings};
  write_report_files(wishes, [&](const std::string& format) { return diagnosis.rendered(format, sink); });
}

// For a failure that is not one of the installation: a line, and the files that were requested.
void print_no_fault(const RunOptions& options, const CommandRun& run, Log log) {
  progress_note(no_fault_line(run, log));
  const std::vector<std::string> wishes = absolute_wishes(options);
  if (wishes.empty()) return;
  Snapshot snapshot;
  snapshot.tool_version = kToolVersion;
  snapshot.log = Probed<Log>::of(std::move(log));
  const Diagnosis diagnosis(options.redact ? redacted(snapshot, own_names()) : snapshot);
  const SinkOptions sink{.verbose = options.show.verbose, .exit_status = kExitInconclusive};
  write_report_files(wishes, [&](const std::string& format) { return diagnosis.rendered(format, sink); });
}

void explain_failure(const RunOptions& options, const CommandRun& run) {
  const TextStyle style{
      .color = wants_color(options.show.color, ::isatty(STDERR_FILENO) != 0, own_variable),
      .ascii = !locale_is_utf8(own_variable),
      .verbose = options.show.verbose,
      .quiet = options.show.quiet};
  write_log(options, run);
  if (run.within_line) std::cerr << "\n";
  Log log = log_of(options, run);
  if (points_to_installation(run, log))
    print_diagnosis(options, run, std::move(log), style);
  else
    print_no_fault(options, run, std::move(log));
}

}  // namespace

int run_run(const RunOptions& options) {
  if (const auto problem = unwritable(options)) {
    report_error(*problem);
    return kExitUsage;
  }
  const auto result = run_command(options.command);
  if (const auto* failed = std::get_if<NotStarted>(&result)) {
    report_error(failed->error);
    return failed->status;
  }
  const auto& run = std::get<CommandRun>(result);
  // Who ended the command, or stopped reading what it says, knows why.
  if (run.status != 0 && !run.interrupted && !run.reader_gone) explain_failure(options, run);
  if (WIFEXITED(run.status)) return WEXITSTATUS(run.status);
  std::cerr.flush();
  end_like(run.status);
}

}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>

#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/cli/run.h"
#include "doctor/run/command.h"
#include "doctor/run/deaths.h"
#include "doctor/run/interpreters.h"

namespace scankit::cli {
namespace {

// Signals by which a fault in native code ends a process.
bool is_crash(int number) {
  constexpr std::array kCrashes{SIGSEGV, SIGABRT, SIGBUS, SIGILL, SIGFPE, SIGSYS};
  return std::ranges::find(kCrashes, number) != kCrashes.end();
}

// Why it ended, as far as something says so; "" otherwise.
Message reason_of_end(const std::vector<std::string>& words, const run::CommandRun& run, const Log& log) {
  if (run.memory_kills > 0)
    return message("the kernel killed {} of its processes because memory ran out", run.memory_kills);
  if (run.memory_kills_of_machine > 0 && signal_of(run.status) == SIGKILL)
    return message_n(run.memory_kills_of_machine,
                     "meanwhile the kernel killed {} process of this machine because memory ran out",
                     "meanwhile the kernel killed {} processes of this machine because memory ran out",
                     run.memory_kills_of_machine);
  const LogHit* root = root_hit(log);
  if (root != nullptr && root->cause.empty()) return root->meaning;
  if (!WIFEXITED(run.status)) return {};
  return run::meaning_of_exit(words, WEXITSTATUS(run.status), run.output.text);
}

}  // namespace

const LogHit* root_hit(const Log& log) {
  return log.hits.empty() || log.hits.front().role != "root" ? nullptr : &log.hits.front();
}

int signal_of(int status) {
  if (WIFSIGNALED(status)) return WTERMSIG(status);
  const int code = WEXITSTATUS(status);
  return code > 128 && code <= 128 + 31 ? code - 128 : 0;
}

Message end_in_words(const run::CommandRun& run) {
  const int number = signal_of(run.status);
  if (number == 0 && run.crashed_in.empty()) return message("exited with status {}", WEXITSTATUS(run.status));
  if (number == 0)
    return message("exited with status {} after a crash in {}", WEXITSTATUS(run.status), run.crashed_in);
  if (run.crashed_in.empty()) return message("was ended by signal {} ({})", number, ::strsignal(number));
  return message("was ended by signal {} ({}) in {}", number, ::strsignal(number), run.crashed_in);
}

// "Segmentation fault" in the output does not say whose fault it is: a C program of the user's prints the
// same. Such a line counts as a crash, which has to be confirmed.
FailureKind kind_of_failure(const run::CommandRun& run, const Log& log) {
  const LogHit* root = root_hit(log);
  const bool of_import =
      root != nullptr && (root->cause == "import_crash" ||
                          (root->cause.empty() && std::ranges::find(root->alternatives, "import_crash") !=
                                                      root->alternatives.end()));
  const bool crash_line = of_import && root->file.empty();
  if (root != nullptr && !root->cause.empty() && !crash_line) return FailureKind::OfInstallation;
  if (crash_line || is_crash(signal_of(run.status)) || !run.crashed_in.empty()) return FailureKind::Crash;
  const bool import = std::ranges::any_of(log.unexplained, [](const LogLine& line) {
    return line.text.find("ImportError:") != std::string::npos ||
           line.text.find("ModuleNotFoundError:") != std::string::npos;
  });
  return import && root == nullptr ? FailureKind::OfInstallation : FailureKind::OfProgram;
}

Message end_of_command(const std::vector<std::string>& words, const run::CommandRun& run, const Log& log) {
  const Message reason = reason_of_end(words, run, log);
  if (reason.empty()) return message("the command {}", end_in_words(run));
  return message("the command {}: {}", end_in_words(run), reason);
}

Message no_fault_line(const std::vector<std::string>& words, const run::CommandRun& run, const Log& log) {
  return message("{}; nothing in its output points to the installation", end_of_command(words, run, log));
}

// What it prints begins a line with its name, in any language. An error that came later is a new one.
bool is_explained(const std::vector<std::string>& words, const std::string& output) {
  if (run::launched(words).back() == "scankit") return true;
  bool explained = false;
  for (const std::string_view line : lines_of(output)) {
    for (const std::string_view begin : {"scankit: ", "---- scankit: ", "──── scankit: "})
      explained = explained || line.starts_with(begin);
    if (line.find("Traceback (most recent call last)") != std::string_view::npos) explained = false;
  }
  return explained;
}

void name_modules(Log& log) {
  for (LogHit& hit : log.hits)
    if (const std::string module = run::module_of_file(hit.file); !module.empty()) hit.module = module;
}

void excuse_own_shell(const std::vector<std::string>& words, const run::CommandRun& run, Log& log) {
  if (!WIFEXITED(run.status) || WEXITSTATUS(run.status) != 127) return;
  const Message meaning = run::meaning_of_exit(words, 127, run.output.text);
  if (meaning.empty() || root_hit(log) == nullptr || log.hits.front().rule != "program_of_shell") return;
  log.hits.front().cause.clear();
  log.hits.front().meaning = meaning;
}

std::vector<std::string> modules_of_error(const Log& log) {
  const LogHit* root = root_hit(log);
  if (root == nullptr || root->module.empty()) return {};
  const bool named = !run::module_of_file(root->file).empty() || root->cause == "package_not_installed" ||
                     root->cause == "module_not_built";
  return named ? std::vector{root->module} : std::vector<std::string>();
}

// The kernel names the file whose code crashed. If that is a library such as libc, the module that called it
// is among the last ones.
std::vector<std::string> modules_of_crash(const run::CommandRun& run) {
  auto files = run::modules_at_death(run.crashed_in, run.interpreters);
  // A process that lived between two looks: the name of the file is that of a top-level module.
  const bool is_module = run.crashed_in.find(".cpython-") != std::string::npos ||
                         run.crashed_in.find(".abi3.") != std::string::npos;
  if (files.empty() && is_module) files = {"/site-packages/" + run.crashed_in};
  if (files.empty()) files = run::modules_at_death("", run.interpreters);
  std::vector<std::string> modules;
  for (const std::string& file : files)
    if (const std::string module = run::module_of_file(file); !module.empty()) modules.push_back(module);
  return modules;
}

std::string module_of_crash_file(const run::CommandRun& run) {
  if (run.crashed_in.empty() || run::modules_at_death(run.crashed_in, run.interpreters).empty()) return "";
  const auto modules = modules_of_crash(run);
  return modules.empty() ? "" : modules.front();
}

namespace {

CommandInterpreter interpreter_facts(const run::SeenInterpreter& seen) {
  constexpr std::size_t kModules = 8;
  CommandInterpreter facts{seen.path, seen.directory, seen.other_root, {}};
  for (auto module = seen.modules.rbegin(); module != seen.modules.rend() && facts.modules.size() < kModules;
       ++module)
    facts.modules.push_back(*module);
  return facts;
}

// The traceback before the error that decides, if the rules know one; faulthandler's dump comes after its
// "Fatal Python error". The error names the module better than the line of the source, which may import
// several.
std::optional<CommandPlace> place_facts(const run::CommandRun& run, const Log& log) {
  const LogHit* root = root_hit(log);
  const bool follows = root == nullptr || root->text.find("Fatal Python error") != std::string::npos;
  auto place = run::python_place(run.output.text, follows ? 0 : root->line);
  if (!place) place = run::python_place(run.output.text);
  if (!place) return std::nullopt;
  CommandPlace facts{place->file,   place->line,      place->function,
                     place->source, place->importing, place->module};
  if (facts.importing && root != nullptr && !root->module.empty()) facts.module = root->module;
  const std::string crashed = module_of_crash_file(run);
  if (facts.importing && facts.module.empty()) facts.module = crashed;
  return facts;
}

}  // namespace

RanCommand command_facts(const std::vector<std::string>& words, const std::string& directory,
                         const run::CommandRun& run, const Log& log) {
  RanCommand facts{.words = words, .directory = directory};
  if (WIFEXITED(run.status)) facts.exit_status = WEXITSTATUS(run.status);
  facts.signal = signal_of(run.status);
  facts.end = end_of_command(words, run, log);
  facts.duration_ms = static_cast<std::uint64_t>(run.seconds * 1000);
  facts.output_bytes = run.output.bytes;
  facts.output_cut = run.output.cut;
  facts.memory_kills = run.memory_kills;
  facts.memory_kills_of_machine = run.memory_kills_of_machine;
  facts.crashed_in = run.crashed_in;
  facts.programs = run.programs;
  for (const run::SeenInterpreter& seen : run.interpreters)
    facts.interpreters.push_back(interpreter_facts(seen));
  facts.at = place_facts(run, log);
  return facts;
}

}  // namespace scankit::cli

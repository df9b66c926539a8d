// SPDX-License-Identifier: Apache-2.0
#include "doctor/report/words.h"

#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/report/escape.h"
#include "doctor/report/fixes.h"

namespace scankit::report {
namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;

// One row: the fact in words, or why it is missing.
template <class T, class Words>
void add(Rows& rows, const std::string& name, const Probed<T>& fact, const Words& words) {
  if (fact.present())
    rows.emplace_back(name, words(fact.value));
  else
    rows.emplace_back(name, tr(why_missing(fact)));
}

std::string file_or_input(const std::string& path) { return path == "-" ? say("standard input") : path; }

// Two commands can have nothing to check.
std::string nothing_line(const Report& report) {
  if (!report.snapshot.python.present()) return say("nothing was checked: no step was run");
  return say(
      "nothing to check: PyTorch is not installed for this Python and no compiled CUDA extension was found");
}

// "GPU sm_90, driver 570.86"
std::string described_in_words(const Snapshot& snapshot) {
  std::vector<std::string> parts;
  for (const Message& part : snapshot.described) parts.push_back(tr(part));
  return join(parts);
}

}  // namespace

// In a fixed order; several may apply at once.
std::vector<std::string> target_lines(const Snapshot& snapshot) {
  std::vector<std::string> lines;
  if (snapshot.log.present() && snapshot.log.value.alone)
    lines.push_back(
        say("from the log {} only; no machine was examined", file_or_input(snapshot.log.value.source)));
  if (!snapshot.read_from.empty())
    lines.push_back(
        say("from the stored snapshot {}, not from this machine", file_or_input(snapshot.read_from)));
  if (!snapshot.target_root.empty())
    lines.push_back(say("in the unpacked root {}; nothing in it was executed", snapshot.target_root));
  if (!snapshot.named_files.empty())
    lines.push_back(say("analysed as if it were importable, not executed: {}", join(snapshot.named_files)));
  if (!snapshot.described.empty())
    lines.push_back(say("target as described, not as probed: {}", described_in_words(snapshot)));
  return lines;
}

std::string_view verdict_word(Verdict verdict) {
  if (verdict == Verdict::Healthy) return "healthy";
  if (verdict == Verdict::Empty) return "empty";
  return verdict == Verdict::Broken ? "broken" : "unknown";
}

// A verdict that leaves the question open has the same word for every command.
std::string_view verdict_word(const Report& report) {
  const bool open = report.verdict == Verdict::Unknown || report.verdict == Verdict::Empty;
  if (report.asked == Asked::Health || open) return verdict_word(report.verdict);
  if (report.asked == Asked::Gate) return report.verdict == Verdict::Healthy ? "passed" : "failed";
  return report.verdict == Verdict::Healthy ? "clean" : "drift";
}

std::string_view command_of(const Report& report) {
  if (report.asked == Asked::Gate) return "ci run";
  return report.asked == Asked::Health ? "doctor" : "env check";
}

std::vector<std::string> compared_lines(const Report& report) {
  std::vector<std::string> lines;
  for (const auto& [kind, file] : report.compared_with)
    lines.push_back(kind == "policy"   ? say("under the policy {}", file_or_input(file))
                    : kind == "spec"   ? say("compared with the spec {}", file_or_input(file))
                    : kind == "record" ? say("compared with the record {}", file_or_input(file))
                                       : say("compared with the lock {}", file_or_input(file)));
  return lines;
}

std::vector<std::pair<std::string, std::string>> step_rows(const Report& report) {
  Rows rows;
  for (const Step& step : report.steps)
    rows.emplace_back(step.name, say("status {}, {:.2f} s", step.status, step.seconds));
  return rows;
}

std::string_view severity_word(Severity severity) {
  if (severity == Severity::Error) return "error";
  return severity == Severity::Warning ? "warning" : "note";
}

std::string severity_name(Severity severity) {
  if (severity == Severity::Error) return say("error");
  return severity == Severity::Warning ? say("warning") : say("note");
}

// "/usr/bin/python3 (cpython 3.11.4, venv)", "/opt/py/bin/python3.14t (cpython 3.14.2, free-threaded, other)".
std::string python_in_words(const Python& python) {
  return python.requested + " (" + python.implementation + " " + python.version +
         (python.free_threaded ? ", " + say("free-threaded") : "") +
         (python.kind.empty() ? "" : ", " + python.kind) + ")";
}

// PYTHON_GIL decides for a free-threaded Python alone; another one does not start with PYTHON_GIL=0.
std::string gil_in_words(const Snapshot& snapshot) {
  const auto set = snapshot.environment.find("PYTHON_GIL");
  if (!snapshot.python.value.free_threaded || set == snapshot.environment.end()) return "";
  if (set->second == "1") return say("on, by PYTHON_GIL=1: threads take turns");
  if (set->second == "0")
    return say("off, by PYTHON_GIL=0, for modules too that do not declare that they run without it");
  return "";
}

std::string torch_in_words(const Torch& torch) {
  std::string text =
      torch.version + ", " + (torch.cuda.empty() ? say("CPU build") : say("CUDA {}", torch.cuda));
  if (torch.string_abi == "new") text += ", " + say("CXX11 ABI");
  if (torch.string_abi == "old") text += ", " + say("pre-CXX11 ABI");
  return text;
}

namespace {

// Whose fault it is, and what is wrong.
std::string broken_line(Cause cause) {
  const std::string title = said(info(cause).title);
  const std::string_view slug = info(cause).slug;
  switch (at_fault(cause)) {
    case AtFault::OfModule:
      return say("the module is at fault: {} ({})", title, slug);
    case AtFault::OfDriver:
      return say("the driver is at fault: {} ({})", title, slug);
    case AtFault::OfMachine:
      return say("the machine is at fault: {} ({})", title, slug);
    case AtFault::OfCode:
      return say("the code is at fault, not the environment: {} ({})", title, slug);
    case AtFault::OfBuild:
      return say("the build fails here: {} ({})", title, slug);
    case AtFault::OfInstallation:
      return say("the installation fails: {} ({})", title, slug);
    case AtFault::OfEnvironment:
      break;
  }
  return say("the environment is broken: {} ({})", title, slug);
}

}  // namespace

// The first line that users read, a sentence. It names the root cause, because that is what the others follow from.
std::string verdict_line(const Report& report) {
  const Finding* cause = root(report);
  const std::string_view slug = cause == nullptr ? "" : info(cause->cause).slug;
  const std::string title = cause == nullptr ? "" : said(info(cause->cause).title);
  const bool unknown = report.verdict == Verdict::Unknown;
  if (report.asked == Asked::Drift) {
    if (cause != nullptr) return say("the environment has drifted: {} ({})", title, slug);
    return unknown ? say("no difference was found, but not everything could be compared")
                   : say("the environment has not drifted");
  }
  if (report.verdict == Verdict::Empty) return nothing_line(report);
  if (report.asked == Asked::Gate) {
    if (cause != nullptr) return say("the gate failed: {} ({})", title, slug);
    return unknown ? say("the gate neither passed nor failed") : say("the gate passed");
  }
  if (cause != nullptr) return broken_line(cause->cause);
  if (unknown) return say("it is not known whether the environment works");
  if (report.verdict == Verdict::Broken) return say("the environment is broken");
  if (report.snapshot.log.value.alone) return say("the log shows no error");
  return report.snapshot.observations.present() ? say("the environment is healthy")
                                                : say("the environment is healthy, according to its files");
}

// What there is none of is left out, but for the checks that passed: "1 error, 2 notes; 27 checks passed, 9 do not apply".
std::string counts_line(const Report& report) {
  const Tally n = tally(report);
  const std::size_t unknown = n.unknown + n.crashed;
  std::vector<std::string> found, checked;
  if (n.errors > 0) found.push_back(say_n(n.errors, "{} error", "{} errors", n.errors));
  if (n.warnings > 0) found.push_back(say_n(n.warnings, "{} warning", "{} warnings", n.warnings));
  if (n.notes > 0) found.push_back(say_n(n.notes, "{} note", "{} notes", n.notes));
  checked.push_back(say_n(n.passed, "{} check passed", "{} checks passed", n.passed));
  if (unknown > 0) checked.push_back(say_n(unknown, "{} is unknown", "{} are unknown", unknown));
  if (n.not_applicable > 0)
    checked.push_back(say_n(n.not_applicable, "{} does not apply", "{} do not apply", n.not_applicable));
  return clauses({said_list(found), said_list(checked)});
}

// Facts and reasons, so that a report is complete even if something could not be read.
std::vector<std::pair<std::string, std::string>> versions(const Snapshot& snapshot) {
  Rows rows;
  rows.emplace_back("scankit", snapshot.tool_version);
  for (const std::string& line : target_lines(snapshot)) rows.emplace_back(say("target"), line);
  add(rows, say("Python"), snapshot.python, python_in_words);
  if (const std::string gil = gil_in_words(snapshot); !gil.empty()) rows.emplace_back("GIL", gil);
  add(rows, say("torch"), snapshot.torch, torch_in_words);
  if (!snapshot.gpus.present() || snapshot.gpus.value.empty())
    rows.emplace_back(say("GPU"), tr(why_missing(snapshot.gpus)));
  else
    for (const Gpu& gpu : snapshot.gpus.value)
      rows.emplace_back(say("GPU {}", gpu.index), gpu.name + (gpu.sm.empty() ? "" : ", sm_" + gpu.sm));
  add(rows, say("driver"), snapshot.driver, [](const Driver& driver) { return driver.version; });
  add(rows, say("system"), snapshot.os, [](const Os& os) {
    return os.pretty_name + ", " + os.machine + (os.wsl ? ", WSL" : "") +
           (os.l4t.empty() ? "" : ", Jetson Linux " + os.l4t) +
           (os.container.empty() ? "" : ", " + say("in {}", os.container));
  });
  add(rows, say("C library"), snapshot.libc, [](const LibC& libc) { return libc.kind + " " + libc.version; });
  if (snapshot.extensions.present())
    for (const Extension& file : snapshot.extensions.value)
      if (file.selected) rows.emplace_back(say("module {}", file.module), file.path);
  return rows;
}

std::string fix_or_command(const Fix& fix, const Snapshot& snapshot) {
  const std::string command = fix_command(fix, snapshot);
  return command.empty() ? fix_sentence(fix, snapshot) : command;
}

bool is_open(const Outcome& outcome) {
  return outcome.state == CheckState::Unknown || outcome.state == CheckState::Crashed ||
         (outcome.state == CheckState::Found && !outcome.why.empty());
}

std::vector<std::pair<std::string, std::string>> not_checked(const Report& report) {
  Rows rows;
  for (const Outcome& outcome : report.outcomes) {
    if (outcome.state == CheckState::NotApplicable && outcome.left_out)
      rows.emplace_back(tr(outcome.question), tr(outcome.why));
    for (const Message& part : outcome.not_checked) rows.emplace_back(tr(outcome.question), tr(part));
  }
  return rows;
}

std::vector<std::pair<std::string, std::string>> not_applicable(const Report& report) {
  Rows rows;
  for (const Outcome& outcome : report.outcomes)
    if (outcome.state == CheckState::NotApplicable && !outcome.left_out && !outcome.not_asked)
      rows.emplace_back(tr(outcome.question), tr(outcome.why));
  return rows;
}

namespace {

// The prefix of a check's id, and its group: the suites of a JUnit file, so that a dashboard shows which area
// went red. The first row that fits decides, so a longer prefix comes before a shorter one.
struct Family {
  std::string_view prefix, name;
};
constexpr Family kFamilies[] = {{"torch-api-", "build"},
                                {"torch-there-at-build", "build"},
                                {"cuda-headers-", "build"},
                                {"host-compiler-", "build"},
                                {"python-headers-", "build"},
                                {"cxx-standard-", "build"},
                                {"ninja-", "build"},
                                {"torch-", "torch"},
                                {"built-for-this-torch", "torch"},
                                {"call-signatures-", "packages"},
                                {"siblings-", "packages"},
                                {"triton-", "packages"},
                                {"repairs-", "module"},
                                {"string-abi-", "torch"},
                                {"cuda-", "cuda"},
                                {"gpu-", "gpu"},
                                {"driver-", "gpu"},
                                {"ptx-", "gpu"},
                                {"glibc-", "system"},
                                {"libstdcxx-", "system"},
                                {"machine-", "system"},
                                {"libraries-", "system"},
                                {"every-extension-", "module"},
                                {"module-", "module"},
                                {"python-dependencies-", "packages"},
                                {"package-", "packages"},
                                {"python-tag-", "module"},
                                {"file-", "module"},
                                {"init-", "module"},
                                {"own-symbols-", "module"},
                                {"single-copy", "module"},
                                {"import-", "module"},
                                {"log-", "log"},
                                {"build-", "build"},
                                {"nvcc-", "build"},
                                {"source", "build"},
                                {"spec-", "spec"},
                                {"lock-", "lock"}};

}  // namespace

std::string_view family(std::string_view check) {
  for (const Family& each : kFamilies)
    if (check.starts_with(each.prefix)) return each.name;
  return "environment";
}

namespace {

std::string& program() {
  static std::string name = "scankit";
  return name;
}

}  // namespace

const std::string& scankit_program() { return program(); }

// Without a slash the program was found in PATH, and will be found there again.
void set_scankit_program(const std::string& argv0) {
  program() = argv0.find('/') == std::string::npos ? "scankit" : shell_quoted(argv0);
}

}  // namespace scankit::report

// SPDX-License-Identifier: Apache-2.0
#include "doctor/report/words.h"

#include "doctor/base/say.h"
#include "doctor/report/fixes.h"
#include "doctor/report/fold.h"

namespace scankit {
namespace {

using Rows = std::vector<std::pair<std::string, std::string>>;

template <class T, class Words>
void add(Rows& rows, const char* name, const Probed<T>& fact, const Words& words) {
  if (fact.present())
    rows.emplace_back(name, words(fact.value));
  else
    rows.emplace_back(name, fact.note.empty() ? "not probed" : fact.note);
}

std::string file_or_input(const std::string& path) { return path == "-" ? say("standard input") : path; }

std::string joined(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

}  // namespace

std::string plural(std::size_t n, const std::string& noun) {
  return std::to_string(n) + " " + noun + (n == 1 ? "" : "s");
}

std::vector<std::string> target_lines(const Snapshot& snapshot) {
  std::vector<std::string> lines;
  if (snapshot.log.present() && snapshot.log.value.alone)
    lines.push_back(say("from the log {} alone; nothing of a machine was looked at",
                        file_or_input(snapshot.log.value.source)));
  if (!snapshot.read_from.empty())
    lines.push_back(
        say("from the stored snapshot {}, not from this machine", file_or_input(snapshot.read_from)));
  if (!snapshot.target_root.empty())
    lines.push_back(say("in the unpacked root {}, of which nothing was run", snapshot.target_root));
  if (!snapshot.named_files.empty())
    lines.push_back(
        say("as if this were importable here, and nothing of it was run: {}", joined(snapshot.named_files)));
  if (!snapshot.described.empty())
    lines.push_back(say("target as described, not as seen: {}", joined(snapshot.described)));
  return lines;
}

std::string_view verdict_word(Verdict verdict) {
  if (verdict == Verdict::Healthy) return "healthy";
  return verdict == Verdict::Broken ? "broken" : "unknown";
}

std::string_view severity_word(Severity severity) {
  if (severity == Severity::Error) return "error";
  return severity == Severity::Warning ? "warning" : "note";
}

std::string verdict_line(const Report& report) {
  if (const Finding* cause = root(report); cause != nullptr)
    return "broken: " + std::string(info(cause->cause).slug);
  if (report.verdict == Verdict::Unknown) return "neither proven healthy nor broken";
  if (report.verdict == Verdict::Broken) return "broken";
  return report.snapshot.observations.present() ? "healthy" : "healthy, as far as the files tell";
}

std::string counts_line(const Report& report) {
  const Tally n = tally(report);
  return plural(n.errors, "error") + ", " + plural(n.warnings, "warning") + ", " + plural(n.notes, "note") +
         "; " + plural(n.passed, "check") + " passed, " + std::to_string(n.unknown + n.crashed) +
         " unknown, " + std::to_string(n.not_applicable) + " not applicable";
}

std::vector<std::pair<std::string, std::string>> versions(const Snapshot& snapshot) {
  Rows rows;
  rows.emplace_back("scankit", snapshot.tool_version);
  for (const std::string& line : target_lines(snapshot)) rows.emplace_back("target", line);
  add(rows, "Python", snapshot.python, [](const Python& python) {
    return python.requested + " (" + python.implementation + " " + python.version +
           (python.kind.empty() ? "" : ", " + python.kind) + ")";
  });
  add(rows, "torch", snapshot.torch, [](const Torch& torch) {
    return torch.version + (torch.cuda.empty() ? ", CPU build" : ", CUDA " + torch.cuda) +
           (torch.string_abi.empty() ? "" : ", " + torch.string_abi + " string ABI");
  });
  if (!snapshot.gpus.present() || snapshot.gpus.value.empty())
    rows.emplace_back("GPU", snapshot.gpus.note.empty() ? "not probed" : snapshot.gpus.note);
  else
    for (const Gpu& gpu : snapshot.gpus.value)
      rows.emplace_back("GPU " + std::to_string(gpu.index),
                        gpu.name + (gpu.sm.empty() ? "" : ", sm_" + gpu.sm));
  add(rows, "driver", snapshot.driver, [](const Driver& driver) { return driver.version; });
  add(rows, "system", snapshot.os, [](const Os& os) {
    return os.pretty_name + ", " + os.machine + (os.wsl ? ", WSL" : "") +
           (os.container.empty() ? "" : ", in " + os.container);
  });
  add(rows, "C library", snapshot.libc, [](const LibC& libc) { return libc.kind + " " + libc.version; });
  if (snapshot.extensions.present())
    for (const Extension& file : snapshot.extensions.value)
      if (file.selected) rows.emplace_back("module " + file.module, file.path);
  return rows;
}

std::string fix_or_command(const Fix& fix, const Snapshot& snapshot) {
  const std::string command = fix_command(fix, snapshot);
  return command.empty() ? fix_sentence(fix) : command;
}

bool is_open(const Outcome& outcome) {
  return outcome.state == CheckState::Unknown || outcome.state == CheckState::Crashed ||
         (outcome.state == CheckState::Found && !outcome.why.empty());
}

std::vector<std::pair<std::string, std::string>> not_checked(const Report& report) {
  Rows rows;
  for (const Outcome& outcome : report.outcomes) {
    if (outcome.state == CheckState::NotApplicable && !outcome.not_asked)
      rows.emplace_back(outcome.question, outcome.why);
    for (const std::string& part : outcome.not_checked) rows.emplace_back(outcome.question, part);
  }
  return rows;
}

std::string_view family(std::string_view check) {
#define FAMILY(start, name) \
  if (check.starts_with(start)) return name;
#include "doctor/report/families.def"
#undef FAMILY
  return "environment";
}

}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
#include "doctor/report/fixes.h"

#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/model/snapshot_variables.h"
#include "doctor/report/escape.h"
#include "doctor/report/words.h"

namespace scankit::report {
namespace {

// The module that `scankit fix` means if none is named.
constexpr std::string_view kUsual = "selective_scan_cuda";

// The command for `scankit fix`. A stored snapshot is of another machine, where nobody knows how scankit
// is started, so the plain name is used.
std::string scankit_fix(const Snapshot& snapshot, const std::string& module) {
  const std::string program = snapshot.read_from.empty() ? scankit_program() : "scankit";
  return program + " fix --python " + shell_quoted(python_path(snapshot)) +
         (module.empty() || module == kUsual ? "" : " --module " + shell_quoted(module));
}

// The kinds of the JSON. They are part of its schema and never change.
struct FixKind {
  std::string_view operator()(const InstallModule&) const { return "install_module"; }
  std::string_view operator()(const InstallModelPackage&) const { return "install_package"; }
  std::string_view operator()(const InstallPackages&) const { return "install_packages"; }
  std::string_view operator()(const RebuildPackage&) const { return "rebuild_package"; }
  std::string_view operator()(const BuildProject&) const { return "build_project"; }
  std::string_view operator()(const KeepOnly&) const { return "keep_only"; }
  std::string_view operator()(const RemoveShadow&) const { return "remove_shadow"; }
  std::string_view operator()(const SetEnvironment&) const { return "set_environment"; }
  std::string_view operator()(const ImportTorchFirst&) const { return "import_torch_first"; }
  std::string_view operator()(const Advice&) const { return "advice"; }
};

// The requirements, quoted, each with a space before it.
std::string packages(const InstallPackages& fix) {
  std::string words;
  for (const std::string& requirement : fix.requirements) words += " " + shell_quoted(requirement);
  return words;
}

struct Sentence {
  std::string operator()(const InstallModule& fix) const {
    return say("install scankit's own {}, which needs neither libtorch nor a CUDA runtime", fix.module);
  }
  std::string operator()(const InstallModelPackage& fix) const {
    return say("install {} without its CUDA build, and scankit's own module with it", fix.distribution);
  }
  std::string operator()(const InstallPackages& fix) const {
    return say("install {}", packages(fix).substr(1));
  }
  std::string operator()(const RebuildPackage& fix) const {
    return fix.project.empty() ? say("build {} {} from its sources against the installed torch",
                                     fix.distribution, fix.version)
                               : say("rebuild {} in {}", fix.distribution, fix.project);
  }
  std::string operator()(const BuildProject& fix) const {
    return say("build {} in {}", fix.module, fix.folder);
  }
  std::string operator()(const KeepOnly& fix) const {
    return say("uninstall {}, then install {} again", join(fix.others), fix.requirement);
  }
  std::string operator()(const RemoveShadow& fix) const { return say("move away {}", fix.path); }
  std::string operator()(const SetEnvironment& fix) const {
    return fix.value.empty() ? say("unset {}", fix.name) : say("set {}={}", fix.name, fix.value);
  }
  std::string operator()(const ImportTorchFirst& fix) const {
    return say("write `import torch` before `import {}`", fix.module);
  }
  std::string operator()(const Advice& fix) const {
    const std::string text = tr(fix.text);
    return text.substr(0, text.find('\n'));
  }
};

struct Command {
  const Snapshot& snapshot;
  std::string operator()(const InstallModule& fix) const { return scankit_fix(snapshot, fix.module); }
  std::string operator()(const InstallModelPackage& fix) const {
    return scankit_fix(snapshot, "") + " --package " + shell_quoted(fix.distribution);
  }
  std::string operator()(const RemoveShadow& fix) const { return scankit_fix(snapshot, fix.module); }
  std::string operator()(const InstallPackages& fix) const { return install_command(fix, snapshot); }
  std::string operator()(const RebuildPackage& fix) const { return rebuild_command(fix, snapshot); }
  std::string operator()(const BuildProject& fix) const { return build_command(fix, snapshot); }
  std::string operator()(const KeepOnly& fix) const { return keep_command(fix, snapshot); }
  std::string operator()(const SetEnvironment& fix) const {
    return fix.value.empty() ? "unset " + fix.name : "export " + fix.name + "=" + shell_quoted(fix.value);
  }
  std::string operator()(const ImportTorchFirst&) const { return ""; }
  // shell_advice() of the checks puts a command for the user's shell on the second line.
  std::string operator()(const Advice& fix) const {
    const std::string text = english(fix.text);
    const auto end = text.find('\n');
    return end == std::string::npos ? "" : text.substr(end + 1);
  }
};

// Whether `scankit fix` carries the fix out, as one transaction that can be taken back: what it does
// itself, and what the user's installer can do as this user.
bool scankit_can(const Fix& fix, const Snapshot& snapshot) {
  if (std::holds_alternative<InstallModule>(fix) || std::holds_alternative<InstallModelPackage>(fix) ||
      std::holds_alternative<RemoveShadow>(fix))
    return true;
  if (const auto* rebuild = std::get_if<RebuildPackage>(&fix);
      rebuild != nullptr && !rebuild->project.empty())
    return false;  // an editable project is built in its own folder
  const bool packages =
      std::holds_alternative<InstallPackages>(fix) || std::holds_alternative<RebuildPackage>(fix);
  return packages && installers_of(snapshot).known && snapshot.torch.present() &&
         !fix_command(fix, snapshot).empty();
}

// The command for a fix as the last line of a report shows it: `scankit fix`, if that can do it, else the
// command itself.
std::string line_of(const Fix& fix, const Snapshot& snapshot) {
  const std::string command = fix_command(fix, snapshot);
  const bool packages =
      std::holds_alternative<InstallPackages>(fix) || std::holds_alternative<RebuildPackage>(fix);
  return packages && scankit_can(fix, snapshot) ? scankit_fix(snapshot, "") : command;
}

// The first fix of the finding that has a command. A drift is not a fault: `scankit fix` would find
// nothing to do, so the installer's own command is used. The same holds for what only an error log shows.
std::string first_line_of(const Finding& finding, const Report& report) {
  const bool only_in_log =
      !finding.evidence.empty() && std::ranges::all_of(finding.evidence, [](const Evidence& evidence) {
        return evidence.fact.starts_with("/log/");
      });
  const bool own_command = report.asked == Asked::Drift || only_in_log;
  for (const Fix& fix : finding.fixes) {
    std::string line = own_command ? fix_command(fix, report.snapshot) : line_of(fix, report.snapshot);
    if (!line.empty()) return line;
  }
  return "";
}

// Whether the finding keeps every module from working: it is about torch, the interpreter or the machine.
// An import that takes long is not counted, because the machine may just be busy.
bool stands_below_all(const Finding& finding) {
  if (finding.cause == Cause::ImportHang) return false;
  return finding.module == "torch" || finding.module == "python" || finding.module.empty();
}

// Whether the finding is about the build file of the user's own sources.
bool is_of_a_build(const Finding& finding, const Report& report) {
  const SourceTree& tree = report.snapshot.sources.value;
  return report.snapshot.sources.present() && finding.subject == tree.folder + "/" + tree.build_file;
}

}  // namespace

std::string_view fix_kind(const Fix& fix) { return std::visit(FixKind{}, fix); }
std::string fix_sentence(const Fix& fix) { return std::visit(Sentence{}, fix); }
std::string fix_command(const Fix& fix, const Snapshot& snapshot) {
  // A command of this machine would change this machine, not the unpacked root that was looked at.
  if (!snapshot.target_root.empty()) return "";
  return std::visit(Command{snapshot}, fix);
}

// Adds in parentheses who has to do it, if this user cannot.
std::string fix_sentence(const Fix& fix, const Snapshot& snapshot) {
  const std::string sentence = fix_sentence(fix);
  std::string who;
  if (const auto* packages = std::get_if<InstallPackages>(&fix)) who = who_can_install(*packages, snapshot);
  if (std::holds_alternative<BuildProject>(fix)) who = who_can_install(snapshot);
  if (const auto* keep = std::get_if<KeepOnly>(&fix)) who = who_can_keep(*keep, snapshot);
  if (const auto* rebuild = std::get_if<RebuildPackage>(&fix)) {
    who = who_can_rebuild(*rebuild, snapshot);
    if (who.empty()) who = who_can_install(snapshot);
  }
  return who.empty() || !snapshot.target_root.empty() ? sentence : sentence + " (" + who + ")";
}

// Looks for a command in the order of the findings, and so starts with the root. It stops at a
// fault of torch or of the machine that no command repairs: a command for something above it would
// only seem to help.
std::optional<std::string> repair_command(const Report& report) {
  if (const auto broken = report.snapshot.broken_environment; broken && !broken->command.empty())
    return broken->command;
  if (!report.snapshot.python.present() || !report.snapshot.target_root.empty()) return std::nullopt;
  for (const Finding& finding : report.findings) {
    if (finding.severity() != Severity::Error || finding.because_of) continue;
    std::string line = first_line_of(finding, report);
    if (!line.empty()) return line;
    if (stands_below_all(finding)) return std::nullopt;
  }
  // Warnings get a command only if they are about the user's own sources: nothing that is
  // installed is broken.
  for (const Finding& finding : report.findings)
    if (finding.severity() == Severity::Warning && report.verdict == Verdict::Healthy &&
        is_of_a_build(finding, report))
      if (std::string line = first_line_of(finding, report); !line.empty()) return line;
  return std::nullopt;
}

}  // namespace scankit::report

// SPDX-License-Identifier: Apache-2.0
#include "doctor/report/fixes.h"

#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/report/installer.h"
#include "doctor/report/plain.h"

namespace scankit {
namespace {

// The module that the command means where none is named.
constexpr std::string_view kUsual = "selective_scan_cuda";

std::string scankit_fix(const Snapshot& snapshot, const std::string& module) {
  return "scankit fix --python " + shell_quoted(python_path(snapshot)) +
         (module.empty() || module == kUsual ? "" : " --module " + shell_quoted(module));
}

struct Kind {
  std::string_view operator()(const InstallModule&) const { return "install_module"; }
  std::string_view operator()(const InstallPackages&) const { return "install_packages"; }
  std::string_view operator()(const RebuildPackage&) const { return "rebuild_package"; }
  std::string_view operator()(const RemoveShadow&) const { return "remove_shadow"; }
  std::string_view operator()(const SetEnvironment&) const { return "set_environment"; }
  std::string_view operator()(const ImportTorchFirst&) const { return "import_torch_first"; }
  std::string_view operator()(const Advice&) const { return "advice"; }
};

std::string packages(const InstallPackages& fix) {
  std::string words;
  for (const std::string& requirement : fix.requirements) words += " " + shell_quoted(requirement);
  return words;
}

struct Sentence {
  std::string operator()(const InstallModule& fix) const {
    return say("install scankit's own {}, which needs neither libtorch nor a CUDA runtime", fix.module);
  }
  std::string operator()(const InstallPackages& fix) const {
    return say("install {}", packages(fix).substr(1));
  }
  std::string operator()(const RebuildPackage& fix) const {
    return fix.project.empty() ? say("build {} {} from its sources against the installed torch",
                                     fix.distribution, fix.version)
                               : say("build {} again in {}", fix.distribution, fix.project);
  }
  std::string operator()(const RemoveShadow& fix) const { return say("move away {}", fix.path); }
  std::string operator()(const SetEnvironment& fix) const {
    return fix.value.empty() ? say("unset {}", fix.name) : say("set {}={}", fix.name, fix.value);
  }
  std::string operator()(const ImportTorchFirst& fix) const {
    return say("write `import torch` before `import {}`", fix.module);
  }
  std::string operator()(const Advice& fix) const { return fix.text; }
};

struct Command {
  const Snapshot& snapshot;
  std::string operator()(const InstallModule& fix) const { return scankit_fix(snapshot, fix.module); }
  std::string operator()(const RemoveShadow& fix) const { return scankit_fix(snapshot, fix.module); }
  std::string operator()(const InstallPackages& fix) const { return install_command(fix, snapshot); }
  std::string operator()(const RebuildPackage& fix) const { return rebuild_command(fix, snapshot); }
  std::string operator()(const SetEnvironment& fix) const {
    return fix.value.empty() ? "unset " + fix.name : "export " + fix.name + "=" + shell_quoted(fix.value);
  }
  std::string operator()(const ImportTorchFirst&) const { return ""; }
  std::string operator()(const Advice&) const { return ""; }
};

bool scankit_can(const Fix& fix) {
  return std::holds_alternative<InstallModule>(fix) || std::holds_alternative<RemoveShadow>(fix);
}

}  // namespace

std::string_view fix_kind(const Fix& fix) { return std::visit(Kind{}, fix); }
std::string fix_sentence(const Fix& fix) { return std::visit(Sentence{}, fix); }
std::string fix_command(const Fix& fix, const Snapshot& snapshot) {
  // A command of this machine would change this machine, not the unpacked root that was looked at.
  if (!snapshot.target_root.empty()) return "";
  return std::visit(Command{snapshot}, fix);
}

std::optional<std::string> repair_command(const Report& report) {
  if (!report.snapshot.python.present() || !report.snapshot.target_root.empty()) return std::nullopt;
  for (const Finding& finding : report.findings) {
    if (finding.severity() != Severity::Error) continue;
    const auto fix = std::ranges::find_if(finding.fixes, scankit_can);
    if (fix != finding.fixes.end()) return fix_command(*fix, report.snapshot);
  }
  return std::nullopt;
}

}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>

#include "doctor/base/say.h"
#include "doctor/base/version.h"
#include "doctor/checks/build_view.h"
#include "doctor/checks/check.h"
#include "doctor/checks/repairs.h"

namespace scankit {
namespace {

std::string without_python_build(const Snapshot& snapshot) {
  if (std::string why = builds_no_python_module(snapshot); !why.empty()) return why;
  const SourceTree& tree = snapshot.sources.value;
  return tree.avoids_isolation && snapshot.torch.present() ? say("pyproject.toml switches the isolation off")
                                                           : "";
}

std::optional<std::size_t> torch_requirement(const SourceTree& tree) {
  for (std::size_t i = 0; i < tree.build_requires.size(); ++i) {
    const std::string& requirement = tree.build_requires[i];
    if (package_key(requirement.substr(0, requirement.find_first_of(" <>=!~;[(@"))) == "torch") return i;
  }
  return std::nullopt;
}

// torch==2.4.0, torch==2.4.*: whether the installed one is meant (PEP 440). Other demands take the newest.
std::optional<bool> pin_fits(const std::string& requirement, const std::string& installed) {
  const auto at = requirement.find("==");
  if (at == std::string::npos || requirement.find(',') != std::string::npos) return std::nullopt;
  std::string wanted = requirement.substr(at + 2, requirement.find(';') - at - 2);
  std::erase_if(wanted, [](char c) { return c == ' ' || c == '='; });
  const auto pin = Version::parse(wanted), have = Version::parse(installed);
  if (!pin || !have) return std::nullopt;
  if (!wanted.ends_with(".*")) return *pin == *have;
  for (std::size_t i = 0; i < pin->release.size(); ++i)
    if (pin->part(i) != have->part(i)) return false;
  return true;
}

// pip and uv build in an environment that holds what [build-system] requires and nothing else (PEP 517, PEP
// 518); where pyproject.toml is absent that is setuptools alone.
CheckResult no_torch_in_isolation(const Snapshot& snapshot) {
  const SourceTree& tree = snapshot.sources.value;
  const bool here = snapshot.torch.state != ProbeState::Absent;
  Finding finding = build_finding(snapshot, Cause::TorchMissingAtBuild, "");
  finding.evidence = {{"/sources/value/imports_torch", "true"}};
  if (here) {
    // The folder builds well without isolation.
    finding.severity_override = Severity::Warning;
    finding.summary =
        say("{} imports torch, which its build requirements do not name: an isolated build, the default of "
            "pip and uv, stops at that import",
            tree.build_file);
    finding.fixes = build_fixes(
        snapshot,
        shell_advice(say("build without isolation: {}", build_command(snapshot)), build_command(snapshot)));
  } else {
    finding.summary =
        say("{} imports torch; neither its build requirements nor this environment has one", tree.build_file);
    finding.fixes = build_fixes(snapshot, InstallPackages{{"torch"}});
  }
  return {{std::move(finding)}};
}

CheckResult other_torch_in_isolation(const Snapshot& snapshot, std::size_t i) {
  const SourceTree& tree = snapshot.sources.value;
  const Torch& torch = snapshot.torch.value;
  const std::string& requirement = tree.build_requires[i];
  const auto fits = pin_fits(requirement, torch.version);
  if (!snapshot.torch.present() || fits == true) return {};
  const bool cpu =
      snapshot.build_tools.value.cpu_index && !torch.cuda.empty() && needs_no_cuda(snapshot).empty();
  Finding finding =
      build_finding(snapshot, cpu ? Cause::NvccPresentButIsolated : Cause::BuildIsolationWrongTorch, "");
  if (cpu)
    finding.summary =
        say("an isolated build, the default of pip and uv, brings its own torch by \"{}\" from the index of "
            "CPU builds that PIP_INDEX_URL names, and finds no nvcc with that",
            requirement);
  else if (fits == false)
    finding.summary =
        say("an isolated build, the default of pip and uv, brings \"{}\" and compiles against that; torch "
            "{} is installed",
            requirement, torch.version);
  else
    finding.summary =
        say("an isolated build, the default of pip and uv, compiles against the newest torch that \"{}\" "
            "brings, which need not be the installed {}",
            requirement, torch.version);
  if (!cpu && fits != false) finding.severity_override = Severity::Warning;
  finding.evidence = {{"/sources/value/build_requires/" + std::to_string(i), requirement},
                      {"/torch/value/version", torch.version}};
  if (cpu) finding.evidence.push_back({"/build_tools/value/cpu_index", "true"});
  finding.fixes = build_fixes(
      snapshot,
      shell_advice(say("build without isolation: {}", build_command(snapshot)), build_command(snapshot)));
  return {{std::move(finding)}};
}

CheckResult torch_there_at_build(const Snapshot& snapshot) {
  const SourceTree& tree = snapshot.sources.value;
  if (const auto i = torch_requirement(tree)) return other_torch_in_isolation(snapshot, *i);
  return tree.imports_torch ? no_torch_in_isolation(snapshot) : CheckResult{};
}

}  // namespace

extern const Check kTorchThereAtBuild{.id = "torch-there-at-build",
                                      .question = "Will the build find the installed torch?",
                                      .needs = kSources,
                                      .not_applicable = without_python_build,
                                      .run = torch_there_at_build,
                                      .asked = sources_are_here};
}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
// $VIRTUAL_ENV, ./.venv and $CONDA_PREFIX say which environment is meant. Where its Python cannot be started,
// that is the answer: another Python of PATH would be healthy or broken for reasons of its own.
#include "doctor/base/say.h"
#include "doctor/checks/check.h"
#include "doctor/model/target_facts.h"

namespace scankit {
namespace {

std::string none_is_broken(const Snapshot& snapshot) {
  if (broken_environment(snapshot) || snapshot.python.present()) return "";
  return say("no environment was chosen");
}

Fix environment_repair(const BrokenEnvironment& broken) {
  if (broken.command.starts_with("unset")) return SetEnvironment{broken.origin, ""};
  const std::string repair = retold(broken.repair);
  return Advice{broken.command.empty() ? repair : repair + ": " + broken.command};
}

CheckResult active_environment_usable(const Snapshot& snapshot) {
  const auto broken = broken_environment(snapshot);
  if (!broken) return {};
  Finding finding{.cause = Cause::EnvironmentPythonGone,
                  .subject = broken->path,
                  .module = "python",
                  .summary = say("{}: {}", broken->origin, retold(broken->reason))};
  const auto fact = [](const char* name) { return std::string("/environment/") + name; };
  finding.evidence = {{fact(kBrokenPath), broken->path}, {fact(kBrokenReason), broken->reason}};
  finding.fixes = {environment_repair(*broken)};
  CheckResult result;
  result.findings.push_back(std::move(finding));
  return result;
}

}  // namespace

extern const Check kActiveEnvironmentUsable{.id = "active-environment-usable",
                                            .question = "Can the active environment's Python be used?",
                                            .needs = 0,
                                            .settled_by_import = false,
                                            .not_applicable = none_is_broken,
                                            .run = active_environment_usable};
}  // namespace scankit

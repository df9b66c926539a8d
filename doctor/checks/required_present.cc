// SPDX-License-Identifier: Apache-2.0
// --require, and `require` of a policy: what has to be there, whatever else is healthy.
#include "doctor/base/say.h"
#include "doctor/checks/check.h"
#include "doctor/checks/view.h"
#include "doctor/model/target_facts.h"

namespace scankit {
namespace {

std::string nothing_required(const Snapshot& snapshot) {
  return requirements(snapshot).empty() ? say("nothing was required") : "";
}

bool asked(const Snapshot& snapshot) { return !requirements(snapshot).empty(); }

// The name of a module is not always that of the package that brings it: a command with a name that somebody
// else may have taken is not printed.
std::vector<Fix> repair_of_requirement(const Snapshot& snapshot, const Requirement& wanted) {
  if (wanted.name == "torch") return {InstallPackages{{"torch"}, !wanted.path.empty()}};
  return module_fixes(snapshot, wanted.name, say("install the package that provides {}", wanted.name));
}

CheckResult required_present(const Snapshot& snapshot) {
  CheckResult result;
  for (const Requirement& wanted : requirements(snapshot)) {
    if (wanted.found == "not-read")
      result.unknown.push_back(
          say("whether {} is installed is not known: it could not be looked for", wanted.name));
    if (wanted.found != "absent") continue;
    Finding finding{.cause = Cause::RequiredMissing,
                    .subject = wanted.name,
                    .module = wanted.name,
                    .summary = wanted.path.empty()
                                   ? say("{} is required and is not installed for this Python", wanted.name)
                                   : say("{} is required; its metadata is installed ({}), its files are not",
                                         wanted.name, wanted.path)};
    finding.evidence.push_back(
        {std::string("/environment/") + kRequired, snapshot.environment.at(kRequired)});
    finding.fixes = repair_of_requirement(snapshot, wanted);
    result.findings.push_back(std::move(finding));
  }
  return result;
}

}  // namespace

extern const Check kRequiredPresent{.id = "required-present",
                                    .question = "Is everything that is required installed?",
                                    .needs = 0,
                                    .settled_by_import = false,
                                    .not_applicable = nothing_required,
                                    .run = required_present,
                                    .asked = asked};
}  // namespace scankit

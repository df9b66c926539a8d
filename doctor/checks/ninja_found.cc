// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/checks/build_view.h"
#include "doctor/checks/check.h"

namespace scankit {
namespace {

std::string asks_for_none(const Snapshot& snapshot) {
  const SourceTree& tree = snapshot.sources.value;
  if (!tree.wants_ninja) return say("the build does not use ninja");
  const bool brought = std::ranges::any_of(tree.build_requires, [](const std::string& requirement) {
    return package_key(requirement.substr(0, requirement.find_first_of(" <>=!~;[(@"))) == "ninja";
  });
  return brought ? say("pyproject.toml has ninja brought to the build") : "";
}

CheckResult ninja_found(const Snapshot& snapshot) {
  const SourceTree& tree = snapshot.sources.value;
  CheckResult result;
  if (!snapshot.build_tools.value.ninja.empty()) return result;
  Finding finding =
      build_finding(snapshot, Cause::NinjaMissing,
                    tree.sources.empty() ? say("neither PATH nor the environment holds ninja, so that torch "
                                               "compiles one file after the other")
                                         : say("neither PATH nor the environment holds ninja, so that torch "
                                               "compiles the files of {} one after the other: {}",
                                               tree.build_file, tree.sources.size()));
  finding.evidence = {{"/build_tools/value/ninja", ""}};
  finding.fixes = {InstallPackages{{"ninja"}}};
  result.findings.push_back(std::move(finding));
  return result;
}

}  // namespace

extern const Check kNinjaFound{.id = "ninja-found",
                               .question = "Is there a ninja for the build?",
                               .needs = kSources | kPython,
                               .not_applicable = asks_for_none,
                               .run = ninja_found,
                               .asked = sources_are_here};
}  // namespace scankit

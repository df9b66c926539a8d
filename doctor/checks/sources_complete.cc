// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/checks/build_view.h"
#include "doctor/checks/check.h"

namespace scankit {
namespace {

std::string where_they_are(const SourceTree& tree) {
  if (!tree.unpacked_archive)
    return say(
        "check the folder out again, with its submodules: git -C {} submodule update --init --recursive",
        word_for_shell(tree.folder));
  if (tree.homepage.empty())
    return say(
        "this archive lacks them: take a ready wheel or a later release, or a checkout of the project's "
        "repository at the release's tag");
  return say(
      "this archive lacks them: take a ready wheel or a later release, or check out the release's tag from "
      "{}",
      tree.homepage);
}

CheckResult sources_complete(const Snapshot& snapshot) {
  const SourceTree& tree = snapshot.sources.value;
  CheckResult result;
  result.not_checked = tree.not_read;
  if (tree.sources.empty())
    result.not_checked.push_back(say("whether all files are there: {} does not name them", tree.build_file));
  Finding finding = build_finding(snapshot, Cause::SdistMissingCsrc, "");
  std::vector<std::string> names;
  std::size_t total = 0;
  for (const std::size_t i : in_force(snapshot, tree.missing)) {
    ++total;
    if (names.size() < 3) names.push_back(tree.missing[i].value);
    finding.evidence.push_back(source_evidence("missing", i, tree.missing[i].value));
  }
  if (names.empty()) return result;
  // It may make them first: an archive without the whole folder of sources shows no sign of that.
  if (tree.generates && !tree.unpacked_archive) {
    result.not_checked.push_back(say("whether {} makes {} before it compiles", tree.build_file, join(names)));
    return result;
  }
  finding.summary =
      total == names.size()
          ? say("{} compiles files that are not in the folder: {}", tree.build_file, join(names))
          : say("{} compiles files that are not in the folder, {} of them: {} and more", tree.build_file,
                total, join(names));
  if (tree.fetches_wheel)
    finding.summary =
        say("{}; only the ready wheel that it asks for first can spare the build", finding.summary);
  finding.fixes = build_fixes(snapshot, Advice{where_they_are(tree)});
  // What the archive was unpacked for is a package that scankit installs without the files that it lacks.
  if (const std::string package = package_key(tree.name);
      tree.unpacked_archive && (package == "mamba-ssm" || package == "causal-conv1d"))
    finding.fixes.insert(finding.fixes.begin() + 1, InstallModelPackage{package});
  result.findings.push_back(std::move(finding));
  return result;
}

}  // namespace

extern const Check kSourcesComplete{
    .id = "sources-complete",
    .question = "Does the folder hold the files that its build file compiles?",
    .needs = kSources,
    .not_applicable = nullptr,
    .run = sources_complete,
    .asked = sources_are_here};
}  // namespace scankit

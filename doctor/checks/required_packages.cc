// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "doctor/base/message.h"
#include "doctor/base/text.h"
#include "doctor/checks/check.h"
#include "doctor/checks/snapshot_queries.h"
#include "doctor/model/snapshot_variables.h"

// What has to be installed because somebody said so, or because a program imports it.
namespace scankit::checks {

// --require, and `require` of a policy: what must be installed, however healthy everything else is.
namespace {

Message nothing_required(const Snapshot& snapshot) {
  return requirements(snapshot).empty() ? message("nothing was required") : "";
}

bool asked(const Snapshot& snapshot) { return !requirements(snapshot).empty(); }

// The name of a module is not always that of the package that provides it. No command is printed that
// would install a package under a name that somebody else may have taken.
std::vector<Fix> repair_of_requirement(const Snapshot& snapshot, const Requirement& wanted) {
  if (wanted.name == "torch") return {InstallPackages{{"torch"}, !wanted.path.empty()}};
  return module_fixes(snapshot, wanted.name, message("install the package that provides {}", wanted.name));
}

CheckResult required_present(const Snapshot& snapshot) {
  CheckResult result;
  for (const Requirement& wanted : requirements(snapshot)) {
    if (wanted.found == "not-read")
      result.unknown.push_back(
          message("whether {} is installed is not known: it could not be searched", wanted.name));
    if (wanted.found != "absent") continue;
    Finding finding{
        .cause = Cause::RequiredMissing,
        .subject = wanted.name,
        .module = wanted.name,
        .summary = wanted.path.empty()
                       ? message("{} is required but is not installed for this Python", wanted.name)
                       : message("{} is required; its metadata is installed ({}) but its files are "
                                 "not",
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
                                    .question = "Is every required module and package installed?",
                                    .needs = 0,
                                    .confirmed_by_import = false,
                                    .not_applicable = nothing_required,
                                    .run = required_present,
                                    .asked = asked};

// A program imports mamba_ssm and there is none, or a user asks for it with --module. No other check
// notices: without the package nobody imports the module either.
namespace {

constexpr std::array<std::string_view, 2> kWithOwnModules{"mamba_ssm", "causal_conv1d"};

bool is_there(const Snapshot& snapshot, const std::string& package) {
  return asked_package(snapshot, package) != nullptr || selected_copy(snapshot, package).has_value();
}

// Whether the import fails when the user's program starts: it is at the top level of a file that is not a
// test, without a guard.
bool ends_a_program(const Importer& importer) {
  const std::string name = path_basename(importer.file);
  const bool test = name.starts_with("test_") || name.ends_with("_test.py") || name == "conftest.py";
  return !importer.masked && !importer.in_function && !test;
}

// Indices into package_importers.
std::vector<std::size_t> programs(const Snapshot& snapshot, std::string_view package) {
  std::vector<std::size_t> found;
  const auto& all = snapshot.package_importers.value;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].module == package && ends_a_program(all[i])) found.push_back(i);
  return found;
}

bool wanted(const Snapshot& snapshot, const std::string& package) {
  if (is_there(snapshot, package)) return false;
  return was_asked_for(snapshot, package) || !programs(snapshot, package).empty();
}

Message nobody_wants_one(const Snapshot& snapshot) {
  return std::ranges::none_of(kWithOwnModules,
                              [&](std::string_view one) { return wanted(snapshot, std::string(one)); })
             ? message("no program here imports a package that is not installed")
             : "";
}

// Names all programs in the evidence, and the first one in the sentence.
Finding package_finding(const Snapshot& snapshot, const std::string& package) {
  Finding finding{.cause = Cause::PackageNotInstalled,
                  .subject = package,
                  .module = package,
                  .summary = message("{} is not installed for this Python", package),
                  .evidence = {},
                  .fixes = {InstallModelPackage{normalized_name(package)}}};
  const auto users = programs(snapshot, package);
  for (const std::size_t i : users) {
    const Importer& importer = snapshot.package_importers.value[i];
    if (finding.evidence.empty())
      finding.summary =
          clauses_of({finding.summary, message("{}:{} imports it at startup", importer.file, importer.line)});
    finding.evidence.push_back({"/package_importers/value/" + std::to_string(i) + "/file", importer.file});
  }
  if (users.size() > 1)
    finding.summary =
        clauses_of({finding.summary, message_n(users.size() - 1, "{} more program imports it",
                                               "{} more programs import it", users.size() - 1)});
  if (!users.empty()) return finding;
  const auto& asked = snapshot.modules_asked;
  const auto at = std::ranges::find(asked, package) - asked.begin();
  finding.evidence.push_back({"/modules_asked/" + std::to_string(at), package});
  return finding;
}

CheckResult package_installed(const Snapshot& snapshot) {
  CheckResult result;
  for (const std::string_view package : kWithOwnModules)
    if (wanted(snapshot, std::string(package)))
      result.findings.push_back(package_finding(snapshot, std::string(package)));
  return result;
}

}  // namespace

extern const Check kPackageInstalled{
    .id = "package-installed",
    .question = "Are mamba_ssm and causal_conv1d installed where programs import them?",
    .needs = kPython,
    .confirmed_by_import = false,
    .not_applicable = nobody_wants_one,
    .run = package_installed};

}  // namespace scankit::checks

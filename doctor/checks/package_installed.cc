// SPDX-License-Identifier: Apache-2.0
// A program that imports mamba_ssm where there is no mamba_ssm, or a user who asks for it by --module.
// Nothing else notices: with the package gone nobody imports the module either.
#include <algorithm>
#include <array>

#include "doctor/base/say.h"
#include "doctor/checks/check.h"
#include "doctor/checks/view.h"

namespace scankit {
namespace {

constexpr std::array<std::string_view, 2> kPackages{"mamba_ssm", "causal_conv1d"};

bool is_there(const Snapshot& snapshot, const std::string& package) {
  return asked_package(snapshot, package) != nullptr || selected_copy(snapshot, package).has_value();
}

// At the start of a program of the user's: it fails there.
bool ends_a_program(const Importer& importer) {
  const std::string name = path_basename(importer.file);
  const bool test = name.starts_with("test_") || name.ends_with("_test.py") || name == "conftest.py";
  return !importer.masked && !importer.in_function && !test;
}

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

std::string nobody_wants_one(const Snapshot& snapshot) {
  return std::ranges::none_of(kPackages,
                              [&](std::string_view one) { return wanted(snapshot, std::string(one)); })
             ? say("no program here imports a package that is not installed")
             : "";
}

Finding package_finding(const Snapshot& snapshot, const std::string& package) {
  Finding finding{.cause = Cause::PackageNotInstalled,
                  .subject = package,
                  .module = package,
                  .summary = say("{} is not installed for this Python", package),
                  .evidence = {},
                  .fixes = {InstallModelPackage{package_key(package)}}};
  const auto users = programs(snapshot, package);
  for (const std::size_t i : users) {
    const Importer& importer = snapshot.package_importers.value[i];
    if (finding.evidence.empty())
      finding.summary =
          clauses({finding.summary, say("{}:{} imports it as it starts", importer.file, importer.line)});
    finding.evidence.push_back({"/package_importers/value/" + std::to_string(i) + "/file", importer.file});
  }
  if (users.size() > 1)
    finding.summary = clauses({finding.summary, say_n(users.size() - 1, "{} more program imports it",
                                                      "{} more programs import it", users.size() - 1)});
  if (!users.empty()) return finding;
  const auto& asked = snapshot.modules_asked;
  const auto at = std::ranges::find(asked, package) - asked.begin();
  finding.evidence.push_back({"/modules_asked/" + std::to_string(at), package});
  return finding;
}

CheckResult package_installed(const Snapshot& snapshot) {
  CheckResult result;
  for (const std::string_view package : kPackages)
    if (wanted(snapshot, std::string(package)))
      result.findings.push_back(package_finding(snapshot, std::string(package)));
  return result;
}

}  // namespace

extern const Check kPackageInstalled{
    .id = "package-installed",
    .question = "Are mamba_ssm and causal_conv1d installed where programs import them?",
    .needs = kPython,
    .settled_by_import = false,
    .not_applicable = nobody_wants_one,
    .run = package_installed};
}  // namespace scankit

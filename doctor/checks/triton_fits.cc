// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <set>

#include "doctor/base/say.h"
#include "doctor/base/version.h"
#include "doctor/checks/check.h"
#include "doctor/checks/packages.h"
#include "doctor/checks/view.h"

namespace scankit {
namespace {

bool is_triton(const PackageImport& import) { return import.target_package == "triton"; }
bool needed_at_import(const PackageImport& import) {
  return is_triton(import) && import.when == "import" && import.reached && import.caught.empty();
}

std::string nobody_uses_it(const Snapshot& snapshot) {
  return std::ranges::none_of(snapshot.packages.value.imports, is_triton)
             ? say("no installed package uses triton")
             : "";
}

// "triton==3.6.0 ; platform_system == \"Linux\"" -> "3.6.0"; "" where it pins no single release.
std::string pinned(const std::string& requirement) {
  const auto equals = requirement.find("==");
  const auto marker = requirement.find(';');
  if (equals == std::string::npos || (marker != std::string::npos && marker < equals)) return {};
  const auto from = requirement.find_first_not_of(' ', equals + 2);
  if (from == std::string::npos) return {};
  return requirement.substr(from, requirement.find_first_of(" ;,)", from) - from);
}

Finding triton_finding(const Snapshot& snapshot, std::size_t at, std::string summary,
                       std::vector<Evidence> evidence) {
  const PackageImport& import = snapshot.packages.value.imports[at];
  const std::string pointer = "/packages/value/imports/" + std::to_string(at);
  const std::string& pin = snapshot.packages.value.triton_pin;
  Finding finding{.cause = Cause::TritonIncompatible,
                  .subject = import.file,
                  .module = import.package,
                  .summary = std::move(summary),
                  .evidence = {{pointer + "/target", import.target}, {pointer + "/file", import.file}},
                  .fixes = {}};
  finding.evidence.insert(finding.evidence.end(), evidence.begin(), evidence.end());
  const std::string wanted = pinned(pin);
  if (!wanted.empty()) finding.evidence.push_back({"/packages/value/triton_pin", pin});
  if (wanted.empty())
    finding.fixes.push_back(Advice{say("install the triton that the installed torch names in its metadata")});
  else if (wanted != import.target_version)
    finding.fixes.push_back(InstallPackages{{"triton==" + wanted}});
  else if (import.package == "mamba_ssm")
    finding.fixes.push_back(InstallPackages{{"mamba-ssm>=2.3"}});  // knows triton 3 (tested with 2.3.1)
  else
    finding.fixes.push_back(Advice{
        say("install a release of {} that knows triton {}: torch pins that triton", import.package, wanted)});
  return finding;
}

// `import PACKAGE` comes to a triton that is not there, or that lacks what is imported from it.
std::optional<Finding> fails_at_import(const Snapshot& snapshot) {
  const auto& imports = snapshot.packages.value.imports;
  for (std::size_t i = 0; i < imports.size(); ++i) {
    if (!needed_at_import(imports[i])) continue;
    const Observation* whole = seen_package(snapshot, imports[i].package);
    const Offering offer = offering(snapshot, i);
    if ((offer.offer != Offer::No && offer.offer != Offer::Absent) ||
        (whole != nullptr && whole->outcome == "ok"))
      continue;
    const std::string package = imports[i].package + which_copy(snapshot, imports[i].package);
    const std::string statement = import_statement(imports[i]);
    if (offer.offer == Offer::Absent)
      return triton_finding(snapshot, i,
                            say("`import {}` comes to `{}` ({}), and no triton is installed", package,
                                statement, import_place(imports[i])),
                            offer.evidence);
    return triton_finding(snapshot, i,
                          say("`import {}` comes to `{}` ({}), which triton {} does not offer: {}", package,
                              statement, import_place(imports[i]), imports[i].target_version, offer.why),
                          offer.evidence);
  }
  return std::nullopt;
}

// A kernel that uses what this triton does not have fails when it is compiled, at its first call. Uses behind
// a test of the release were left out by the probe.
void fail_at_their_call(const Snapshot& snapshot, std::vector<Finding>& findings) {
  std::set<std::string> said;
  const auto& imports = snapshot.packages.value.imports;
  for (std::size_t i = 0; i < imports.size(); ++i) {
    const PackageImport& use = imports[i];
    if (!is_triton(use) || use.when != "use" || !use.loaded) continue;
    const Offering offer = offering(snapshot, i);
    const std::string name = use.target + "." + use.name;
    if (offer.offer != Offer::No || !said.insert(use.package + " " + name).second) continue;
    findings.push_back(triton_finding(
        snapshot, i,
        say("{} uses {} ({}), which triton {} does not have: the import works, the kernel does not compile",
            release(use.package, use.version), name, import_place(use), use.target_version),
        offer.evidence));
  }
}

// Another release than torch pins is no fault by itself, but what pip and torch.compile reckon with.
std::optional<Finding> not_as_pinned(const Snapshot& snapshot) {
  const auto& imports = snapshot.packages.value.imports;
  const auto user = std::ranges::find_if(imports, [](const PackageImport& import) {
    return is_triton(import) && import.when == "import" && !import.target_version.empty();
  });
  if (user == imports.end()) return std::nullopt;
  const std::string pin = pinned(snapshot.packages.value.triton_pin);
  // "==3.6.0" is met by 3.6.0+local (PEP 440).
  const auto wanted = Version::parse(pin),
             installed = Version::parse(user->target_version.substr(0, user->target_version.find('+')));
  if (!wanted || !installed || *wanted == *installed) return std::nullopt;
  const auto at = static_cast<std::size_t>(user - imports.begin());
  Finding finding = triton_finding(
      snapshot, at,
      say("triton {} is installed where torch pins {}: whether kernels compile shows when they are called",
          user->target_version, pin),
      {{"/packages/value/imports/" + std::to_string(at) + "/target_version", user->target_version}});
  finding.severity_override = Severity::Warning;
  return finding;
}

CheckResult triton_fits(const Snapshot& snapshot) {
  CheckResult result;
  if (auto finding = fails_at_import(snapshot)) {
    result.findings.push_back(*std::move(finding));
    return result;
  }
  fail_at_their_call(snapshot, result.findings);
  if (!result.findings.empty()) return result;
  if (auto finding = not_as_pinned(snapshot)) result.findings.push_back(*std::move(finding));
  return result;
}

}  // namespace

extern const Check kTritonFits{.id = "triton-fits",
                               .question = "Does the installed triton have what the packages take from it?",
                               .needs = kPython | kPackages,
                               .settled_by_import = false,
                               .not_applicable = nobody_uses_it,
                               .run = triton_fits};
}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
// What a package imports from its siblings must exist. Without a guard, `import PACKAGE` fails. With one,
// the name becomes None: either the file has a slower way for that, or the first call fails with "not
// installed", although the sibling is installed. The second half of the file asks the same of triton.
#include <algorithm>
#include <optional>
#include <set>

#include "doctor/base/message.h"
#include "doctor/base/version.h"
#include "doctor/checks/check.h"
#include "doctor/checks/packages.h"
#include "doctor/checks/snapshot_queries.h"
#include "doctor/knowledge/known_packages.h"

namespace scankit::checks {
namespace {

bool is_transformers(const PackageImport& import) { return import.target_package == "transformers"; }

// Why the import does not get what it asks for.
Message problem_of(const PackageImport& import, const Offering& offering) {
  const std::string target = release(import.target_package, import.target_version);
  if (offering.offer == Offer::Absent) return message("{} is not installed", import.target_package);
  if (!offering.module.empty()) return offering.why;
  return message("{} does not provide that: {}", target, offering.why);
}

// The requirement that settles the mismatch, "" if none is known. transformers 5 has removed the
// generation outputs that mamba_ssm imports from it; causal-conv1d has cpp_functions from 1.5.1 on. Tests
// import such pairs.
std::string fitting_release(const PackageImport& import) {
  const auto target = Version::parse(import.target_version);
  if (is_transformers(import) && import.package == "mamba_ssm" && target && target->part(0) >= 5)
    return "transformers<5";
  if (import.target_package == "causal_conv1d" && import.target.starts_with("causal_conv1d.cpp_functions"))
    return "causal-conv1d>=1.5.1";
  return "";
}

// In this order: repair the module below the sibling, install what it lacks, install the sibling, choose
// another release.
std::vector<Fix> sibling_fixes(const Snapshot& snapshot, const PackageImport& import,
                               const Offering& offering) {
  if (!offering.module.empty())
    return module_fixes(snapshot, offering.module, message("repair {}", offering.module));
  if (!offering.lacks.empty())
    return {
        InstallPackages{{knowledge::distribution_of_import_name(offering.lacks).value_or(offering.lacks)}}};
  if (offering.offer == Offer::Absent) return {InstallPackages{{import.target_package}}};
  if (std::string requirement = fitting_release(import); !requirement.empty())
    return {InstallPackages{{std::move(requirement)}}};
  if (is_transformers(import))
    return {Advice{message("install a {} that supports {} {}, or a transformers that still has {}",
                           import.package, import.target_package, import.target_version, import.name)}};
  return {Advice{message("install matching releases of {} and {}", import.package, import.target_package)}};
}

Finding make(const Snapshot& snapshot, std::size_t at, const Offering& offering, Cause cause,
             Message summary) {
  const PackageImport& import = snapshot.packages.value.imports[at];
  const std::string pointer = "/packages/value/imports/" + std::to_string(at);
  Finding finding{.cause = cause,
                  .subject = import.file,
                  // Findings about a module and about the package around it must name the same module, or
                  // they are not grouped.
                  .module = !offering.module.empty() ? offering.module
                            : cause == Cause::TransformersIncompatible || !offering.lacks.empty()
                                ? import.package
                                : module_beside(snapshot, import),
                  .summary = std::move(summary),
                  .evidence = {{pointer + "/file", import.file}, {pointer + "/target", import.target}},
                  .fixes = sibling_fixes(snapshot, import, offering)};
  finding.evidence.insert(finding.evidence.end(), offering.evidence.begin(), offering.evidence.end());
  if (!offering.lacks.empty()) finding.circumstances.push_back(Circumstance::LacksDependency);
  if (!import.masked_value.empty())
    finding.evidence.push_back({pointer + "/masked_value", import.masked_value});
  return finding;
}

// A guard that gives the name another value than None has another way: an older name, or a function of
// its own. `tested` is "if" where the file checks the name before it calls it.
std::optional<Finding> masked(const Snapshot& snapshot, std::size_t at, const Offering& offering) {
  const PackageImport& import = snapshot.packages.value.imports[at];
  if (import.masked_value != "None" || is_transformers(import) || import.called_at == 0 ||
      offering.offer != Offer::No)
    return std::nullopt;
  const Message package = which_copy(snapshot, import.package, import.version);
  const std::string name = import.name.empty() ? import.target : import.name;
  const Message problem = problem_of(import, offering);
  if (import.tested == "if")
    return make(snapshot, at, offering, Cause::SpeedSlowPath,
                message("{} hides the failure of `{}` ({}), so its slower code runs instead of {}: {}",
                        package, import_statement(import), import_place(import), name, problem));
  return make(
      snapshot, at, offering, Cause::SilentNoneCausalConv1d,
      message("{} hides the failure of `{}` ({}): {} becomes None, which line {} calls; the reason: {}",
              package, import_statement(import), import_place(import), name, import.called_at, problem));
}

// An import without a guard that fails. It may be in a file that no code that was read reaches.
std::optional<Finding> unguarded(const Snapshot& snapshot, std::size_t at, const Offering& offering) {
  const PackageImport& import = snapshot.packages.value.imports[at];
  // Other checks report modules under diagnosis and packages that are not installed.
  if (!offering.module.empty() || !offering.lacks.empty() || offering.offer == Offer::Absent)
    return std::nullopt;
  const Observation* whole = seen_package(snapshot, import.package);
  if (import.reached && whole != nullptr && whole->outcome == "ok") return std::nullopt;
  const Cause cause = is_transformers(import) ? Cause::TransformersIncompatible : Cause::SignatureMismatch;
  const Message package = which_copy(snapshot, import.package, import.version);
  const Message problem = problem_of(import, offering);
  Finding finding =
      make(snapshot, at, offering, cause,
           import.reached ? message("`import {}` fails: {} does `{}` ({}), but {}", import.package, package,
                                    import_statement(import), import_place(import), problem)
                          : message("{} does `{}` ({}), but {}; importing that file fails", package,
                                    import_statement(import), import_place(import), problem));
  if (!import.reached) finding.circumstances.push_back(Circumstance::NoImportReachesIt);
  return finding;
}

// triton has a check of its own; uses inside the code are not imports.
bool is_ours(const PackageImport& import) {
  return import.target_package != "triton" && import.when == "import";
}

Message nothing_is_imported(const Snapshot& snapshot) {
  return std::ranges::none_of(snapshot.packages.value.imports, is_ours)
             ? message("no installed package imports from a sibling package of the modules")
             : "";
}

// One finding for each file and target: the names of one `from` line fail together.
CheckResult siblings_offer_names(const Snapshot& snapshot) {
  CheckResult result;
  std::set<std::pair<std::string, std::string>> said;
  const auto& imports = snapshot.packages.value.imports;
  for (std::size_t i = 0; i < imports.size(); ++i) {
    if (!is_ours(imports[i])) continue;
    const Offering offer = offering(snapshot, i);
    if (offer.offer != Offer::No && offer.offer != Offer::Absent) continue;
    auto finding = imports[i].caught.empty() ? unguarded(snapshot, i, offer) : masked(snapshot, i, offer);
    const std::string& below = offer.module.empty() ? imports[i].target : offer.module;
    if (finding && said.emplace(imports[i].file, below).second)
      result.findings.push_back(*std::move(finding));
  }
  return result;
}

}  // namespace

extern const Check kSiblingsOfferNames{
    .id = "siblings-offer-names",
    .question = "Do the installed packages provide what others import from them?",
    .needs = kPython | kPackages,
    .confirmed_by_import = false,
    .not_applicable = nothing_is_imported,
    .run = siblings_offer_names};

namespace {

bool is_triton(const PackageImport& import) { return import.target_package == "triton"; }
bool needed_at_import(const PackageImport& import) {
  return is_triton(import) && import.when == "import" && import.reached && import.caught.empty();
}

Message nobody_uses_it(const Snapshot& snapshot) {
  return std::ranges::none_of(snapshot.packages.value.imports, is_triton)
             ? message("no installed package uses triton")
             : "";
}

// The release that a requirement pins: "3.6.0" of "triton==3.6.0 ; platform_system == \"Linux\""; "" for
// anything else.
std::string pinned(const std::string& requirement) {
  const auto equals = requirement.find("==");
  const auto marker = requirement.find(';');
  if (equals == std::string::npos || (marker != std::string::npos && marker < equals)) return {};
  const auto from = requirement.find_first_not_of(' ', equals + 2);
  if (from == std::string::npos) return {};
  return requirement.substr(from, requirement.find_first_of(" ;,)", from) - from);
}

// The repair depends on what is wrong: torch's metadata names no triton, another triton is installed, or
// the package does not know the triton that torch pins.
Finding triton_finding(const Snapshot& snapshot, std::size_t at, Message summary,
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
    finding.fixes.push_back(
        Advice{message("install the triton that the installed torch requires in its metadata")});
  else if (wanted != import.target_version)
    finding.fixes.push_back(InstallPackages{{"triton==" + wanted}});
  else if (import.package == "mamba_ssm")
    finding.fixes.push_back(InstallPackages{{"mamba-ssm>=2.3"}});  // knows triton 3 (tested with 2.3.1)
  else
    finding.fixes.push_back(Advice{message(
        "install a release of {} that supports triton {}: torch pins that triton", import.package, wanted)});
  return finding;
}

// `import PACKAGE` reaches an import of triton that fails: there is none, or it lacks the name.
std::optional<Finding> fails_at_import(const Snapshot& snapshot) {
  const auto& imports = snapshot.packages.value.imports;
  for (std::size_t i = 0; i < imports.size(); ++i) {
    if (!needed_at_import(imports[i])) continue;
    const Observation* whole = seen_package(snapshot, imports[i].package);
    const Offering offer = offering(snapshot, i);
    if ((offer.offer != Offer::No && offer.offer != Offer::Absent) ||
        (whole != nullptr && whole->outcome == "ok"))
      continue;
    const Message package = which_copy(snapshot, imports[i].package, "");
    const std::string statement = import_statement(imports[i]);
    if (offer.offer == Offer::Absent)
      return triton_finding(snapshot, i,
                            message("`import {}` reaches `{}` ({}), but triton is not installed", package,
                                    statement, import_place(imports[i])),
                            offer.evidence);
    return triton_finding(
        snapshot, i,
        message("`import {}` reaches `{}` ({}), which triton {} does not provide: {}", package, statement,
                import_place(imports[i]), imports[i].target_version, offer.why),
        offer.evidence);
  }
  return std::nullopt;
}

// A kernel that uses what this triton lacks fails when it is compiled, at its first call. The probe
// leaves out uses behind a test of triton's release.
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
        message("{} uses {} ({}), which triton {} does not have: the import works, but the kernel does not "
                "compile",
                release(use.package, use.version), name, import_place(use), use.target_version),
        offer.evidence));
  }
}

// Another release than the pinned one is not a fault by itself, but pip and torch.compile expect
// the pinned one.
std::optional<Finding> not_as_pinned(const Snapshot& snapshot) {
  const auto& imports = snapshot.packages.value.imports;
  const auto user = std::ranges::find_if(imports, [](const PackageImport& import) {
    return is_triton(import) && import.when == "import" && !import.target_version.empty();
  });
  if (user == imports.end()) return std::nullopt;
  const std::string pin = pinned(snapshot.packages.value.triton_pin);
  // "==3.6.0" accepts 3.6.0+local (PEP 440).
  const auto wanted = Version::parse(pin),
             installed = Version::parse(user->target_version.substr(0, user->target_version.find('+')));
  if (!wanted || !installed || *wanted == *installed) return std::nullopt;
  const auto at = static_cast<std::size_t>(user - imports.begin());
  Finding finding = triton_finding(
      snapshot, at,
      message("triton {} is installed, but torch pins {}: whether kernels compile is only seen when they are "
              "called",
              user->target_version, pin),
      {{"/packages/value/imports/" + std::to_string(at) + "/target_version", user->target_version}});
  finding.circumstances.push_back(Circumstance::OtherThanPinned);
  return finding;
}

// Only the most serious of the three is reported.
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
                               .question = "Does the installed triton provide what the packages use?",
                               .needs = kPython | kPackages,
                               .confirmed_by_import = false,
                               .not_applicable = nobody_uses_it,
                               .run = triton_fits};

}  // namespace scankit::checks

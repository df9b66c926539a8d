// SPDX-License-Identifier: Apache-2.0
// What a package imports from its siblings must be there. Unguarded, `import PACKAGE` fails; guarded, the
// name becomes None: either the file has a slow way for that, or the first call fails with a message that
// says "not installed" of what is installed.
#include <algorithm>
#include <set>

#include "doctor/base/say.h"
#include "doctor/base/version.h"
#include "doctor/checks/check.h"
#include "doctor/checks/packages.h"
#include "doctor/checks/view.h"
#include "doctor/knowledge/import_names.h"

namespace scankit {
namespace {

bool is_transformers(const PackageImport& import) { return import.target_package == "transformers"; }

std::string problem_of(const PackageImport& import, const Offering& offering) {
  const std::string target = release(import.target_package, import.target_version);
  if (offering.offer == Offer::Absent) return say("{} is not installed", import.target_package);
  if (!offering.module.empty()) return offering.why;
  return say("{} does not offer that: {}", target, offering.why);
}

// transformers 5 removed the generation outputs that mamba_ssm's releases take from it; causal-conv1d has
// cpp_functions from 1.5.1 on. The tests import such pairs.
std::string fitting_release(const PackageImport& import) {
  const auto target = Version::parse(import.target_version);
  if (is_transformers(import) && import.package == "mamba_ssm" && target && target->part(0) >= 5)
    return "transformers<5";
  if (import.target_package == "causal_conv1d" && import.target.starts_with("causal_conv1d.cpp_functions"))
    return "causal-conv1d>=1.5.1";
  return "";
}

std::vector<Fix> sibling_fixes(const Snapshot& snapshot, const PackageImport& import,
                               const Offering& offering) {
  if (!offering.module.empty())
    return module_fixes(snapshot, offering.module, say("repair {}", offering.module));
  if (!offering.lacks.empty())
    return {InstallPackages{{distribution_of_import_name(offering.lacks).value_or(offering.lacks)}}};
  if (offering.offer == Offer::Absent) return {InstallPackages{{import.target_package}}};
  if (std::string requirement = fitting_release(import); !requirement.empty())
    return {InstallPackages{{std::move(requirement)}}};
  if (is_transformers(import))
    return {Advice{say("install a {} that knows {} {}, or a transformers that still has {}", import.package,
                       import.target_package, import.target_version, import.name)}};
  return {Advice{
      say("install releases of {} and {} that belong together", import.package, import.target_package)}};
}

Finding make(const Snapshot& snapshot, std::size_t at, const Offering& offering, Cause cause,
             std::string summary) {
  const PackageImport& import = snapshot.packages.value.imports[at];
  const std::string pointer = "/packages/value/imports/" + std::to_string(at);
  Finding finding{.cause = cause,
                  .subject = import.file,
                  .module = !offering.module.empty() ? offering.module
                            : cause == Cause::TransformersIncompatible || !offering.lacks.empty()
                                ? import.package
                                : module_beside(snapshot, import),
                  .summary = std::move(summary),
                  .evidence = {{pointer + "/file", import.file}, {pointer + "/target", import.target}},
                  .fixes = sibling_fixes(snapshot, import, offering)};
  finding.evidence.insert(finding.evidence.end(), offering.evidence.begin(), offering.evidence.end());
  if (!offering.lacks.empty()) finding.because_of = Cause::MissingPythonDependency;
  if (!import.masked_value.empty())
    finding.evidence.push_back({pointer + "/masked_value", import.masked_value});
  return finding;
}

// A handler that gives the name another meaning than None has another way: an older name, a function of its
// own.
std::optional<Finding> masked(const Snapshot& snapshot, std::size_t at, const Offering& offering) {
  const PackageImport& import = snapshot.packages.value.imports[at];
  if (import.masked_value != "None" || is_transformers(import) || import.called_at == 0 ||
      offering.offer != Offer::No)
    return std::nullopt;
  const std::string package = release(import.package, import.version) + which_copy(snapshot, import.package);
  const std::string name = import.name.empty() ? import.target : import.name;
  const std::string problem = problem_of(import, offering);
  if (import.tested == "if")
    return make(snapshot, at, offering, Cause::SpeedSlowPath,
                say("{} hides the failure of `{}` ({}), so that its slower way runs in place of {}: {}",
                    package, import_statement(import), import_place(import), name, problem));
  return make(
      snapshot, at, offering, Cause::SilentNoneCausalConv1d,
      say("{} hides the failure of `{}` ({}): {} becomes None, which line {} calls; the reason is that {}",
          package, import_statement(import), import_place(import), name, import.called_at, problem));
}

std::optional<Finding> unguarded(const Snapshot& snapshot, std::size_t at, const Offering& offering) {
  const PackageImport& import = snapshot.packages.value.imports[at];
  // What is wrong with a module under diagnosis, and that a package is not there, other checks say.
  if (!offering.module.empty() || !offering.lacks.empty() || offering.offer == Offer::Absent)
    return std::nullopt;
  const Observation* whole = seen_package(snapshot, import.package);
  if (import.reached && whole != nullptr && whole->outcome == "ok") return std::nullopt;
  const Cause cause = is_transformers(import) ? Cause::TransformersIncompatible : Cause::SignatureMismatch;
  const std::string package = release(import.package, import.version) + which_copy(snapshot, import.package);
  const std::string problem = problem_of(import, offering);
  Finding finding =
      make(snapshot, at, offering, cause,
           import.reached ? say("`import {}` fails: {} does `{}` ({}), but {}", import.package, package,
                                import_statement(import), import_place(import), problem)
                          : say("{} does `{}` ({}), but {}; whoever imports that file fails on it", package,
                                import_statement(import), import_place(import), problem));
  if (!import.reached) finding.severity_override = Severity::Note;
  return finding;
}

bool is_ours(const PackageImport& import) {
  return import.target_package != "triton" && import.when == "import";
}

std::string nothing_is_imported(const Snapshot& snapshot) {
  return std::ranges::none_of(snapshot.packages.value.imports, is_ours)
             ? say("no installed package imports from a sibling of the modules")
             : "";
}

// One finding a file and target: the names of one `from` line fail together.
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
    .question = "Do the sibling packages offer what the packages import from them?",
    .needs = kPython | kPackages,
    .settled_by_import = false,
    .not_applicable = nothing_is_imported,
    .run = siblings_offer_names};
}  // namespace scankit

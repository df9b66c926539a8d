// SPDX-License-Identifier: Apache-2.0
// The packages around the modules (tilelang, apache-tvm-ffi, quack-kernels, nvidia-cutlass-dsl, triton and
// others) beside each other: releases that do not fit, and packages that are there twice. Another release
// than metadata asks for is a warning; an error is what an import was seen to end with.
#include <algorithm>
#include <optional>

#include "doctor/base/files.h"
#include "doctor/base/message.h"
#include "doctor/base/text.h"
#include "doctor/base/version.h"
#include "doctor/checks/check.h"
#include "doctor/checks/packages.h"
#include "doctor/checks/snapshot_queries.h"
#include "doctor/knowledge/known_packages.h"

namespace scankit::checks {
namespace {

const Distribution* installed(const Snapshot& snapshot, const std::string& name) {
  return find_distribution(snapshot.distributions.value, name);
}

std::string pointer_to(const Snapshot& snapshot, const Distribution& distribution) {
  return "/distributions/value/" + std::to_string(&distribution - snapshot.distributions.value.data());
}

// The distribution that a file of site-packages belongs to, by the table of names: "tvm_ffi/registry.py" is of
// apache-tvm-ffi. nullptr for a file that is in no package of an installed distribution.
const Distribution* owner_of(const Snapshot& snapshot, const std::string& file) {
  for (const PathEntry& entry : snapshot.python.value.sys_path) {
    if (!entry.exists || entry.origin == "cwd" || !file.starts_with(entry.path + "/")) continue;
    const std::string rest = file.substr(entry.path.size() + 1);
    const std::string package = rest.substr(0, rest.find('/'));
    const Distribution* found =
        installed(snapshot, knowledge::distribution_of_import_name(package).value_or(package));
    if (found != nullptr) return found;
  }
  return nullptr;
}

// Where a failed import of a package ended, and whose code had called that: two distributions beside the
// package itself.
struct Clash {
  const Observation* seen = nullptr;
  const Distribution *caller = nullptr, *callee = nullptr;
};
std::optional<Clash> clash_of(const Snapshot& snapshot, const Observation& seen) {
  Clash clash{.seen = &seen};
  for (const std::string& file : seen.raised_through) {
    const Distribution* owner = owner_of(snapshot, file);
    if (owner == nullptr || owner == clash.callee) continue;
    if (clash.callee != nullptr) {
      clash.caller = owner;
      break;
    }
    clash.callee = owner;
  }
  return clash.caller != nullptr ? std::optional(clash) : std::nullopt;
}

// The row that says that these two do not work together.
const knowledge::NeighbourPair* known_misfit(const Distribution& caller, const Distribution& callee) {
  for (const knowledge::NeighbourPair& pair : knowledge::neighbour_pairs())
    if (normalized_name(caller.name) == pair.package && normalized_name(callee.name) == pair.with &&
        meets(caller.version, pair.releases) && !meets(callee.version, pair.takes))
      return &pair;
  return nullptr;
}

// What code raises that asks another package for what that does not have. A RuntimeError may as well be about
// the machine: triton raises one where there is no GPU.
bool is_of_another_interface(const Observation& seen) {
  return seen.exception == "AttributeError" || seen.exception == "TypeError" ||
         seen.exception == "ImportError" || seen.exception == "NameError";
}

bool is_shared(const Snapshot& snapshot, const Distribution& distribution) {
  return std::ranges::any_of(snapshot.packages.value.shared, [&](const SharedPackage& shared) {
    return std::ranges::find(shared.owners, distribution.name) != shared.owners.end();
  });
}

// Imports of packages that ended in a neighbour, and of which nothing else is known.
std::vector<Clash> clashes(const Snapshot& snapshot) {
  std::vector<Clash> found;
  if (!snapshot.observations.present()) return found;
  for (const Observation& seen : snapshot.observations.value) {
    if (seen.variant != "package" || seen.outcome != "error" || !seen.missing.empty()) continue;
    const auto clash = clash_of(snapshot, seen);
    if (!clash || is_shared(snapshot, *clash->callee)) continue;
    const bool of_torch =
        normalized_name(clash->callee->name) == "torch" || normalized_name(clash->caller->name) == "torch";
    const bool plain = is_of_another_interface(seen) && seen.reads_as.empty() && !of_torch;
    if (plain || known_misfit(*clash->caller, *clash->callee) != nullptr) found.push_back(*clash);
  }
  return found;
}

std::vector<Fix> repair_of(const Distribution& caller, const Distribution& callee) {
  if (const knowledge::NeighbourPair* pair = known_misfit(caller, callee)) {
    // torch is what the compiled modules were made for: the other one changes.
    if (pair->with == "torch")
      return {InstallPackages{{knowledge::limit_for_torch(pair->package, callee.version)}}};
    return {InstallPackages{{callee.name + pair->takes}}};
  }
  return {Advice{message("install another release of {} or of {}: these two do not work together",
                         callee.name, caller.name)}};
}

Finding clash_finding(const Snapshot& snapshot, const Clash& clash) {
  const std::string caller = release(clash.caller->name, clash.caller->version),
                    callee = release(clash.callee->name, clash.callee->version);
  const std::string seen =
      "/observations/value/" + std::to_string(clash.seen - snapshot.observations.value.data());
  Finding finding{.cause = Cause::PackageReleasesDiffer,
                  .subject = clash.seen->raised_at,
                  .module = clash.seen->module,
                  .summary = message("`import {}` ends in {}, called by {}: {}: {}", clash.seen->module,
                                     callee, caller, clash.seen->exception, clash.seen->message),
                  .evidence = {{seen + "/message", english(clash.seen->message)},
                               {seen + "/raised_at", clash.seen->raised_at},
                               {pointer_to(snapshot, *clash.caller) + "/version", clash.caller->version},
                               {pointer_to(snapshot, *clash.callee) + "/version", clash.callee->version}},
                  .fixes = repair_of(*clash.caller, *clash.callee),
                  .circumstances = {Circumstance::EndedImport}};
  if (known_misfit(*clash.caller, *clash.callee) != nullptr)
    finding.summary = message("{} - {} is known not to work with {}", finding.summary, caller, callee);
  return finding;
}

bool was_imported(const Snapshot& snapshot, const std::string& package) {
  const Observation* seen = seen_package(snapshot, package);
  return seen != nullptr && seen->outcome == "ok";
}

// Pairs of the table that are installed, where no import was made that shows it.
std::vector<Finding> known_misfits(const Snapshot& snapshot, const std::vector<Clash>& seen) {
  std::vector<Finding> findings;
  if (installed(snapshot, "mamba-ssm") == nullptr || was_imported(snapshot, "mamba_ssm")) return findings;
  for (const knowledge::NeighbourPair& pair : knowledge::neighbour_pairs()) {
    const Distribution *caller = installed(snapshot, pair.package), *callee = installed(snapshot, pair.with);
    if (caller == nullptr || callee == nullptr || known_misfit(*caller, *callee) != &pair) continue;
    const bool shown = std::ranges::any_of(
        seen, [&](const Clash& clash) { return clash.caller == caller && clash.callee == callee; });
    if (shown) continue;
    // tilelang's library aborts the process where it meets a class that is registered already.
    const Observation* whole = seen_package(snapshot, "mamba_ssm");
    const bool aborts = whole != nullptr && whole->outcome == "crashed";
    findings.push_back(
        {.cause = Cause::PackageReleasesDiffer,
         .subject = caller->name,
         .module = "mamba_ssm",
         .summary =
             message("{} is known not to work with {}: it takes {}{}", release(caller->name, caller->version),
                     release(callee->name, callee->version), pair.with, pair.takes),
         .evidence = {{pointer_to(snapshot, *caller) + "/version", caller->version},
                      {pointer_to(snapshot, *callee) + "/version", callee->version}},
         .fixes = repair_of(*caller, *callee),
         .circumstances = {aborts ? Circumstance::EndedImport : Circumstance::OtherThanPinned}});
  }
  return findings;
}

// triton-fits says it of torch's own pin.
Finding unmet_finding(const UnmetRequirement& unmet, std::size_t at) {
  const std::string pointer = "/packages/value/unmet/" + std::to_string(at);
  return {
      .cause = Cause::PackageReleasesDiffer,
      .subject = unmet.distribution,
      .module = unmet.root,
      .summary = message("{} requires {}, and {} is installed", release(unmet.distribution, unmet.version),
                         unmet.requirement, release(unmet.name, unmet.installed)),
      .evidence = {{pointer + "/requirement", unmet.requirement}, {pointer + "/installed", unmet.installed}},
      .fixes = {InstallPackages{{unmet.requirement}}},
      .circumstances = {Circumstance::OtherThanPinned}};
}

Message nothing_beside(const Snapshot& snapshot) {
  const Packages& packages = snapshot.packages.value;
  return packages.found.empty() && packages.unmet.empty() && packages.shared.empty()
             ? message("no package around the modules is installed")
             : "";
}

CheckResult neighbours_fit(const Snapshot& snapshot) {
  CheckResult result;
  const auto seen = clashes(snapshot);
  for (const Clash& clash : seen) result.findings.push_back(clash_finding(snapshot, clash));
  for (Finding& finding : known_misfits(snapshot, seen)) result.findings.push_back(std::move(finding));
  const auto& unmet = snapshot.packages.value.unmet;
  for (std::size_t i = 0; i < unmet.size(); ++i) result.findings.push_back(unmet_finding(unmet[i], i));
  return result;
}

}  // namespace

extern const Check kNeighboursFit{
    .id = "neighbours-fit",
    .question = "Do the releases of the packages around the modules fit each other?",
    .needs = kPython | kPackages,
    .confirmed_by_import = false,
    .not_applicable = nothing_beside,
    .run = neighbours_fit};

namespace {

Message of_shared(const SharedPackage& shared) {
  if (!shared.hidden.empty()) return message("import takes {}, which hides {}", shared.file, shared.hidden);
  return message("{} was installed by each of these: {}; the last one has written over the others",
                 shared.file, join(shared.owners));
}

// The distribution that the neighbours require: the first owner by the table, which torch's metadata and
// mamba_ssm's name.
std::string wanted_owner(const SharedPackage& shared) {
  const std::string usual = knowledge::distribution_of_import_name(shared.package).value_or(shared.package);
  for (const std::string& owner : shared.owners)
    if (normalized_name(owner) == normalized_name(shared.package)) return owner;
  return usual;
}

Fix repair_of(const Snapshot& snapshot, const SharedPackage& shared) {
  if (shared.owners.size() < 2)
    return Advice{message("uninstall the distribution that {} belongs to", path_dirname(shared.file))};
  const std::string name = wanted_owner(shared);
  std::vector<std::string> others;
  for (const std::string& owner : shared.owners)
    if (owner != name) others.push_back(owner);
  const Distribution* kept = installed(snapshot, name);
  const std::string keep = kept == nullptr || kept->version.empty() ? name : name + "==" + kept->version;
  return KeepOnly{keep, others};
}

// The import that ended inside the package, in a file of the one or of the other.
const Observation* ended_inside(const Snapshot& snapshot, const SharedPackage& shared) {
  const std::string folder = path_dirname(shared.file) + "/";
  if (!snapshot.observations.present()) return nullptr;
  const Observation* found = nullptr;
  for (const Observation& seen : snapshot.observations.value) {
    if (seen.outcome != "error" || !seen.raised_at.starts_with(folder)) continue;
    // The import of the whole package says whose import it ends; that of a part only that it does.
    if (seen.variant == "package") return &seen;
    if (found == nullptr) found = &seen;
  }
  return found;
}

// Whether code that runs needs what this import or use names: an import that is reached and not caught, unless the
// import of the whole package was seen to work; a use in a file that is loaded (a kernel fails at its first call).
bool is_needed(const Snapshot& snapshot, const PackageImport& import) {
  if (import.when == "use") return import.loaded;
  if (import.when != "import" || !import.reached || !import.caught.empty()) return false;
  const Observation* whole = seen_package(snapshot, import.package);
  return whole == nullptr || whole->outcome != "ok";
}

// The first import or use of a name that the copy which is found does not have, known from the files.
std::optional<std::size_t> lacking_import(const Snapshot& snapshot, const SharedPackage& shared) {
  const auto& imports = snapshot.packages.value.imports;
  for (std::size_t i = 0; i < imports.size(); ++i)
    if (imports[i].target_package == shared.package && is_needed(snapshot, imports[i]) &&
        offering(snapshot, i).offer == Offer::No)
      return i;
  return std::nullopt;
}

// Says what the two copies break, if they break anything: an import that was seen to end there, or a name that the
// files show to be missing.
void add_harm(const Snapshot& snapshot, const SharedPackage& shared, Finding& finding) {
  if (const Observation* seen = ended_inside(snapshot, shared)) {
    const auto at = std::to_string(seen - snapshot.observations.value.data());
    finding.module = seen->variant == "package" ? seen->module : shared.package;
    finding.summary = message("{}; `import {}` ends at {} with {}: {}", finding.summary, seen->module,
                              seen->raised_at, seen->exception, seen->message);
    finding.evidence.push_back({"/observations/value/" + at + "/raised_at", seen->raised_at});
    finding.circumstances = {Circumstance::EndedImport};
  } else if (const auto at = lacking_import(snapshot, shared)) {
    const PackageImport& import = snapshot.packages.value.imports[*at];
    finding.module = import.package;
    finding.summary = import.when == "use"
                          ? message("{}; {} uses {}.{} ({}), which is not in it", finding.summary,
                                    import.package, import.target, import.name, import_place(import))
                          : message("{}; `import {}` reaches `{}` ({}), which is not in it", finding.summary,
                                    import.package, import_statement(import), import_place(import));
    finding.evidence.push_back({"/packages/value/imports/" + std::to_string(*at) + "/file", import.file});
    finding.circumstances = {Circumstance::LacksNeededName};
  }
}

CheckResult packages_installed_once(const Snapshot& snapshot) {
  CheckResult result;
  const auto& all = snapshot.packages.value.shared;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string pointer = "/packages/value/shared/" + std::to_string(i);
    Finding finding{.cause = Cause::PackageOverwritten,
                    .subject = all[i].package,
                    .module = all[i].package,
                    .summary = of_shared(all[i]),
                    .evidence = {{pointer + "/file", all[i].file}},
                    .fixes = {repair_of(snapshot, all[i])}};
    if (!all[i].hidden.empty()) finding.evidence.push_back({pointer + "/hidden", all[i].hidden});
    for (std::size_t k = 0; k < all[i].records.size(); ++k)
      finding.evidence.push_back({pointer + "/records/" + std::to_string(k), all[i].records[k]});
    add_harm(snapshot, all[i], finding);
    result.findings.push_back(std::move(finding));
  }
  return result;
}

}  // namespace

extern const Check kPackagesInstalledOnce{
    .id = "packages-installed-once",
    .question = "Is each package around the modules installed by one distribution only?",
    .needs = kPython | kPackages,
    .confirmed_by_import = false,
    .not_applicable = nothing_beside,
    .run = packages_installed_once};

}  // namespace scankit::checks

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/message.h"
#include "doctor/base/text.h"
#include "doctor/checks/check.h"
#include "doctor/checks/snapshot_queries.h"

namespace scankit::checks {
namespace {

// Why this check does not apply: no module under diagnosis is installed, and nothing needs one.
Message nothing_needs_them(const Snapshot& snapshot) {
  std::vector<std::string> absent;
  for (const std::string& module : snapshot.modules) {
    const bool needed = !needing_importers(snapshot, module).empty() || was_asked_for(snapshot, module) ||
                        declaring_package(snapshot, module) != nullptr;
    if (needed || selected_copy(snapshot, module)) return "";
    absent.push_back(module);
  }
  return absent.empty() ? message("no module to check")
                        : message("not installed, and no installed package needs it: {}", join(absent));
}

// Who imports the module, and what a guard makes of its absence.
Message how_it_is_imported(const Importer& importer) {
  const std::string package = importer.package + (importer.version.empty() ? "" : " " + importer.version);
  const std::string place = importer.file + ":" + std::to_string(importer.line);
  if (!importer.masked) return message("{} imports it ({})", package, place);
  if (importer.masked_value.empty())
    return message("{} imports it ({}), inside try/except ImportError", package, place);
  return message("{} imports it ({}), inside try/except ImportError: the name becomes {}", package, place,
                 importer.masked_value);
}

// The build of the package that needs the module, where its own files say that it leaves the module out unless
// somebody asks for it. state-spaces/mamba does so since commit f577286d of July 2026, after release 2.3.2.
const PackageBuild* build_without(const Snapshot& snapshot, const std::string& module,
                                  const std::vector<std::size_t>& importers) {
  const auto& builds = snapshot.packages.value.builds;
  const auto found = std::ranges::find_if(builds, [&](const PackageBuild& build) {
    const auto imports = [&](std::size_t i) { return snapshot.importers.value[i].package == build.package; };
    return build.module == module && !build.opt_in.empty() && !build.lists_module &&
           std::ranges::any_of(importers, imports);
  });
  return found == builds.end() ? nullptr : &*found;
}

// Mamba2 and Mamba3 work without the module. Sources that take nothing else of the package do not miss it; where
// there are none, nothing is known of what is run here.
bool sources_do_without(const Snapshot& snapshot) {
  const auto& layers = snapshot.project.value.layers;
  return !layers.empty() &&
         std::ranges::all_of(layers, [](const LayerImport& layer) { return layer.needs == "nothing"; });
}

// Says of the finding that the release is meant to be so, and how it is built with the module.
void explain_by_release(const Snapshot& snapshot, const PackageBuild& build, Finding& finding) {
  const std::string pointer =
      "/packages/value/builds/" + std::to_string(&build - snapshot.packages.value.builds.data());
  finding.cause = Cause::ModuleNotInRelease;
  finding.summary = message(
      "{} installs without {} unless {}=TRUE is set for its build ({}:{}); layers of Mamba-1 fail when they "
      "are called, Mamba2 and Mamba3 do not need it",
      build.distribution + (build.version.empty() ? "" : " " + build.version), build.module, build.opt_in,
      build.file, build.line);
  finding.evidence.push_back({pointer + "/opt_in", build.opt_in});
  for (std::size_t i = 0; i < build.tags.size(); ++i)
    finding.evidence.push_back({pointer + "/tags/" + std::to_string(i), build.tags[i]});
  finding.evidence.push_back({pointer + "/lists_module", "false"});
  if (!build.version.empty())
    finding.fixes.emplace_back(
        RebuildPackage{build.distribution, build.version, "", {{build.opt_in, "TRUE"}}});
  const auto& layers = snapshot.project.value.layers;
  for (std::size_t i = 0; i < layers.size(); ++i)
    if (layers[i].needs == "module")
      finding.evidence.push_back({"/project/value/layers/" + std::to_string(i) + "/file", layers[i].file});
  if (was_asked_for(snapshot, build.module) || !sources_do_without(snapshot)) return;
  finding.circumstances.push_back(Circumstance::SourcesDoNotNeedIt);
  finding.summary = message("{}; the sources in the current directory use only layers that do not need it",
                            finding.summary);
}

// A package that declares the module was installed without it: a build that left it out, or a wheel for another machine.
void explain_by_declaration(const Snapshot& snapshot, const DeclaredPackage& package, Finding& finding) {
  const std::string pointer = "/declared/" + std::to_string(&package - snapshot.declared.data());
  const auto at = std::ranges::find(package.modules, finding.module) - package.modules.begin();
  finding.subject = package.distribution;
  finding.summary = message("{} declares the module {} in {}, but no file of it is on this Python's path",
                            package.distribution, finding.module, package.file);
  finding.evidence = {{pointer + "/modules/" + std::to_string(at), finding.module},
                      {pointer + "/file", package.file}};
  const Distribution* distribution = find_distribution(snapshot.distributions.value, package.distribution);
  if (distribution == nullptr) return;
  if (auto rebuilds = rebuilds_of(snapshot, *distribution); !rebuilds.empty())
    finding.fixes = std::move(rebuilds);
}

// The finding for a module without a usable file. It is an error if an installed package or the user
// wants it, and a note if only files of the current directory do.
Finding absence(const Snapshot& snapshot, const std::string& module,
                const std::vector<std::size_t>& importers) {
  Finding finding{
      .cause = Cause::ModuleNotBuilt,
      .subject = importers.empty() ? module : snapshot.importers.value[importers.front()].package,
      .module = module,
      .summary = importers.empty()
                     ? message("{} was requested, but no file of it is on this Python's path", module)
                     : message("no file of {} is on this Python's path", module)};
  if (importers.empty() && was_asked_for(snapshot, module)) {
    const auto& asked = snapshot.modules_asked;
    const auto at = std::ranges::find(asked, module) - asked.begin();
    finding.evidence.push_back({"/modules_asked/" + std::to_string(at), module});
  }
  for (const std::size_t i : importers) {
    const Importer& importer = snapshot.importers.value[i];
    const std::string pointer = "/importers/value/" + std::to_string(i);
    if (i == importers.front()) finding.summary = clauses_of({finding.summary, how_it_is_imported(importer)});
    finding.evidence.push_back({pointer + "/file", importer.file});
    finding.evidence.push_back({pointer + "/line", std::to_string(importer.line)});
    if (importer.masked) finding.evidence.push_back({pointer + "/masked", "true"});
  }
  finding.fixes = module_fixes(snapshot, module, message("build {} for this Python and torch", module));
  const auto nearby = [&](std::size_t i) { return is_only_nearby(snapshot, snapshot.importers.value[i]); };
  if (!importers.empty() && !was_asked_for(snapshot, module) && std::ranges::all_of(importers, nearby)) {
    finding.circumstances.push_back(Circumstance::OnlyNearbyFilesNeedIt);
    finding.summary =
        message("{}; no installed package needs it, only files in the current directory do", finding.summary);
  }
  const DeclaredPackage* declared = declaring_package(snapshot, module);
  if (importers.empty() && declared != nullptr) explain_by_declaration(snapshot, *declared, finding);
  if (const PackageBuild* build = build_without(snapshot, module, importers))
    explain_by_release(snapshot, *build, finding);
  return finding;
}

// --module may name a package of plain Python, for which no compiled file is expected.
bool names_a_distribution(const Snapshot& snapshot, const std::string& module) {
  const std::string top = normalized_name(module.substr(0, module.find('.')));
  return std::ranges::any_of(snapshot.distributions.value, [&](const Distribution& installed) {
    return normalized_name(installed.name) == top;
  });
}

// A copy on the path that import cannot take (another tag, another machine) is not this check's subject:
// kPythonTagFits and kMachineMatches name it.
CheckResult module_present(const Snapshot& snapshot) {
  CheckResult result;
  for (const std::string& module : snapshot.modules) {
    // Python packages: they are there, or kPackageInstalled says that they are not.
    if (asked_package(snapshot, module) != nullptr || module == "mamba_ssm" || module == "causal_conv1d")
      continue;
    const auto importers = needing_importers(snapshot, module);
    const bool declared = declaring_package(snapshot, module) != nullptr;
    if (importers.empty() && !was_asked_for(snapshot, module) && !declared)
      continue;  // installed or not, nobody misses it
    bool on_the_path = false;
    std::vector<Evidence> elsewhere, links;
    for (const Copy& copy : copies(snapshot)) {
      if (copy->module != module) continue;
      // A link whose target is gone.
      const bool dangling = !copy->selected && copy->file_state == "vanished";
      on_the_path = on_the_path || copy->selected || (copy->sys_path_index >= 0 && !dangling);
      if (dangling) links.push_back(copy.at("path", copy->path));
      if (copy->sys_path_index < 0) elsewhere.push_back(copy.at("path", copy->path));
    }
    if (on_the_path) continue;
    if (importers.empty() && !declared && names_a_distribution(snapshot, module)) {
      result.unknown.push_back(message(
          "no compiled file of {} is on this Python's path, but a distribution with that name is installed: "
          "only an import can tell",
          module));
      continue;
    }
    Finding finding = absence(snapshot, module, importers);
    if (!elsewhere.empty())
      finding.summary = clauses_of(
          {finding.summary, message("a file of it is outside the path: {}", elsewhere.front().value)});
    finding.evidence.insert(finding.evidence.end(), elsewhere.begin(), elsewhere.end());
    if (!links.empty())
      finding.summary = clauses_of(
          {finding.summary, message("{} is a link to a file that does not exist", links.front().value)});
    finding.evidence.insert(finding.evidence.end(), links.begin(), links.end());
    result.findings.push_back(finding);
  }
  return result;
}

}  // namespace

extern const Check kModulePresent{.id = "module-present",
                                  .question = "Is every module installed that a package imports?",
                                  .needs = kPython | kExtensions | kImporters,
                                  .confirmed_by_import = true,
                                  .not_applicable = nothing_needs_them,
                                  .run = module_present};

namespace {

// Two paths of one file, or two files from the same build.
bool same_content(const Extension& a, const Extension& b) {
  return a.real_path == b.real_path || (a.size == b.size && !a.build_id.empty() && a.build_id == b.build_id);
}

// The copy that import takes is broken and a later one is not. Moving the first away is the whole repair.
Finding shadowing(const Copy& winner, const Copy& good, const Message& obstacle) {
  return {.cause = Cause::SeveralCopies,
          .subject = winner->path,
          .module = winner->module,
          .summary = message("this copy ({}) comes first and hides a good one: {}", obstacle, good->path),
          .evidence = {winner.at("path", winner->path), good.at("path", good->path)},
          .fixes = {RemoveShadow{winner->path, winner->module}}};
}

// If a user may not write to the environment, scankit fix puts its module into a directory of that user,
// which comes first. The copy behind it belongs to somebody else and does no harm.
bool is_covered_on_purpose(const Copy& winner, const Copy& other) {
  return winner->distribution.starts_with("scankit-") && winner->sys_path_index < other->sys_path_index;
}

Finding harmless(const Copy& winner, const std::vector<Copy>& others) {
  const std::size_t n = others.size();
  Finding finding{
      .cause = Cause::SeveralCopies,
      .subject = winner->path,
      .module = winner->module,
      .summary = message_n(n, "{} other file of {} is on the path and is not used",
                           "{} other files of {} are on the path and are not used", n, winner->module),
      .fixes = {Advice{message("move the unused files away")}}};
  bool other_may_win = false;
  for (const Copy& other : others) {
    finding.evidence.push_back(other.at("path", other->path));
    // Which of two different files wins depends on the directory and the variables of the shell that
    // starts Python.
    other_may_win |=
        other->shadowed && !same_content(*winner, *other) && !is_covered_on_purpose(winner, other);
  }
  finding.circumstances = {other_may_win ? Circumstance::OtherCopyMayWin : Circumstance::UnusedCopy};
  return finding;
}

CheckResult single_copy(const Snapshot& snapshot) {
  CheckResult result;
  for (const Copy& winner : selected_copies(snapshot)) {
    std::vector<Copy> others;
    for (const Copy& copy : copies(snapshot))
      if (copy->module == winner->module && !copy->selected && copy->sys_path_index >= 0 &&
          copy->real_path != winner->real_path)
        others.push_back(copy);
    if (others.empty()) continue;
    // nullopt means that the files do not say whether the winner loads.
    const auto obstacle = static_obstacle(snapshot, *winner);
    const auto good = std::ranges::find_if(others, [&](const Copy& other) {
      return suffix_fits(snapshot, *other) && static_obstacle(snapshot, *other) == Message();
    });
    if (obstacle && !obstacle->empty() && good != others.end())
      result.findings.push_back(shadowing(winner, *good, *obstacle));
    else
      result.findings.push_back(harmless(winner, others));
  }
  return result;
}

}  // namespace

extern const Check kSingleCopy{.id = "single-copy",
                               .question = "Is the correct copy of each module the one that gets imported?",
                               .needs = kPython | kExtensions,
                               .confirmed_by_import = true,
                               .not_applicable = no_copy_found,
                               .run = single_copy};

}  // namespace scankit::checks

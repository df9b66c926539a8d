// SPDX-License-Identifier: Apache-2.0
// What a package imports from others must be installed. There are two witnesses: an import that ended
// with "No module named X" in somebody else's file, and the metadata of the packages together with the
// lines that reach such an import. What metadata asks for and no import reaches is one note.
#include <algorithm>
#include <map>
#include <utility>

#include "doctor/base/message.h"
#include "doctor/base/text.h"
#include "doctor/checks/check.h"
#include "doctor/checks/packages.h"
#include "doctor/checks/repairs.h"
#include "doctor/checks/snapshot_queries.h"
#include "doctor/knowledge/known_packages.h"
#include "doctor/knowledge/python_names.h"

namespace scankit::checks {
namespace {

// Everything that is known about one absent package.
struct Absence {
  std::vector<std::size_t> requirements;  // places in missing_requirements
  std::vector<std::size_t> observations{};
};

std::string pointer_to(const char* list, std::size_t at) { return list + std::to_string(at); }

// These have checks of their own.
bool is_others_matter(const Snapshot& snapshot, const std::string& package) {
  return package.empty() || package == "triton" || is_bundled_module(package) ||
         std::ranges::find(snapshot.modules, package) != snapshot.modules.end();
}

// torch is imported like a module under diagnosis, the others as packages.
const Observation* import_of(const Snapshot& snapshot, const std::string& root) {
  return root == "torch" ? deciding_import(snapshot, root) : seen_package(snapshot, root);
}
bool works(const Snapshot& snapshot, const std::string& root) {
  const Observation* seen = import_of(snapshot, root);
  return seen != nullptr && seen->outcome == "ok";
}

// The package whose import fails: "transformers" for "transformers.generation", which nobody imports
// for its own sake.
std::string root_of(const Snapshot& snapshot, const Observation& seen) {
  if (seen.variant != "sibling") return seen.module;
  for (const PackageImport& import : snapshot.packages.value.imports)
    if (import.target == seen.module) return import.package;
  return top_package(seen.module);
}

// A sibling is imported by itself. It ends the import of its package if the line has no guard; if a guard
// leaves None and the file calls that, it ends the first call.
bool ends_an_import(const Snapshot& snapshot, const Observation& seen) {
  if (seen.variant != "sibling") return true;
  return std::ranges::any_of(snapshot.packages.value.imports, [&](const PackageImport& import) {
    if (import.target != seen.module) return false;
    if (import.caught.empty()) return import.reached && !works(snapshot, import.package);
    return import.masked_value == "None" && import.called_at != 0 && import.tested != "if";
  });
}

// The absent packages by import name, from both witnesses.
std::map<std::string, Absence> absences(const Snapshot& snapshot) {
  std::map<std::string, Absence> found;
  const auto& asked = snapshot.missing_requirements.value;
  for (std::size_t i = 0; i < asked.size(); ++i)
    if (!is_others_matter(snapshot, asked[i].package)) found[asked[i].package].requirements.push_back(i);
  const auto& seen = snapshot.observations.value;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    std::string package = missing_package(seen[i]);
    // The name may be that of a distribution and not of a package: "The 'tqdm>=4.27' distribution
    // was not found".
    for (const MissingRequirement& one : asked)
      if (normalized_name(one.name) == normalized_name(package)) package = one.package;
    if (is_others_matter(snapshot, package) || package == top_package(seen[i].module)) continue;
    found[package].observations.push_back(i);
  }
  return found;
}

// What to install. `guessed`: only the import name is known, and the distribution may have another one.
struct Needed {
  std::string requirement;
  bool guessed = false;
};

// The distribution of an import name: as metadata names it, else by the table, else of the same name.
Needed needed(const Snapshot& snapshot, const std::string& package, const Absence& absence) {
  if (!absence.requirements.empty())
    return {snapshot.missing_requirements.value[absence.requirements.front()].requirement};
  if (const auto known = knowledge::distribution_of_import_name(package)) return {*known};
  for (const PackageFound& ours : snapshot.packages.value.found)
    if (ours.name == package) return {package};
  return {package, true};
}

Message who_requires(const MissingRequirement& asked) {
  return message("{} requires {}", release(asked.distribution, asked.version), asked.requirement);
}

Message how_it_failed(const Observation& seen) {
  if (seen.raised_at.empty())
    return message("`import {}` fails with {}: {}", seen.module, seen.exception, seen.message);
  return message("`import {}` fails at {} with {}: {}", seen.module, seen.raised_at, seen.exception,
                 seen.message);
}

// scankit knows how to install these two without a compiler.
Fix repair(const std::string& package, const Needed& wanted) {
  if (package == "mamba_ssm" || package == "causal_conv1d")
    return InstallModelPackage{normalized_name(package)};
  return InstallPackages{{wanted.requirement}};
}

// What proves it, best first: an observed failure, else the line that reaches the import.
std::vector<Message> reasons(const Snapshot& snapshot, const Absence& absence) {
  std::vector<Message> said_of_it;
  std::vector<std::string> failing;
  for (const std::size_t i : absence.observations) {
    const Observation& seen = snapshot.observations.value[i];
    if (failing.empty()) said_of_it.push_back(how_it_failed(seen));
    if (std::ranges::find(failing, seen.module) == failing.end()) failing.push_back(seen.module);
  }
  if (failing.size() > 1) {
    failing.erase(failing.begin());
    said_of_it.push_back(message("these fail for the same reason: {}", join(failing)));
  }
  for (const std::size_t i : absence.requirements) {
    const MissingRequirement& asked = snapshot.missing_requirements.value[i];
    if (absence.observations.empty() && !asked.file.empty())
      said_of_it.push_back(message("`import {}` reaches it at {}:{}", asked.root, asked.file, asked.line));
    if (i == absence.requirements.front() ||
        asked.distribution != snapshot.missing_requirements.value[absence.requirements.front()].distribution)
      said_of_it.push_back(who_requires(asked));
  }
  return said_of_it;
}

void add_evidence(const Snapshot& snapshot, const Absence& absence, Finding& finding) {
  for (const std::size_t i : absence.observations) {
    const std::string at = pointer_to("/observations/value/", i);
    finding.evidence.push_back({at + "/message", english(snapshot.observations.value[i].message)});
  }
  for (const std::size_t i : absence.requirements) {
    const MissingRequirement& asked = snapshot.missing_requirements.value[i];
    const std::string at = pointer_to("/missing_requirements/value/", i);
    finding.evidence.push_back({at + "/requirement", asked.requirement});
    if (!asked.file.empty()) finding.evidence.push_back({at + "/file", asked.file});
  }
}

// The package whose import it ends; "" if it ends none.
std::string broken_root(const Snapshot& snapshot, const Absence& absence) {
  for (const std::size_t i : absence.observations)
    if (ends_an_import(snapshot, snapshot.observations.value[i]))
      return root_of(snapshot, snapshot.observations.value[i]);
  for (const std::size_t i : absence.requirements) {
    const MissingRequirement& asked = snapshot.missing_requirements.value[i];
    if (!asked.file.empty() && !works(snapshot, asked.root)) return asked.root;
  }
  return "";
}

bool is_module_of_python(const std::string& package) {
  return knowledge::is_of_python(package) || knowledge::optional_part_of_python(package);
}

// No index has a module of Python's own: it is left out of this Python, or other versions have it (imp).
void say_what_python_lacks(const std::string& package, Finding& finding) {
  if (!is_module_of_python(package)) return;
  finding.summary = message("this Python has no {}", package);
  if (const auto part = knowledge::optional_part_of_python(package)) {
    finding.fixes = {install_part_of_python(package, *part)};
    return;
  }
  finding.cause = Cause::PythonUnsupported;
  finding.fixes = {Advice{table_text(std::string(info(finding.cause).next_step))}};
}

Finding dependency_finding(const Snapshot& snapshot, const std::string& package, const Absence& absence,
                           const std::string& root) {
  const Needed wanted = needed(snapshot, package, absence);
  Finding finding{.cause = Cause::MissingPythonDependency,
                  .subject = package,
                  .module = root,
                  .summary = message("{} is not installed", package),
                  .evidence = {},
                  .fixes = {repair(package, wanted)}};
  if (wanted.guessed) say_what_python_lacks(package, finding);
  std::vector<Message> parts{finding.summary};
  for (Message& reason : reasons(snapshot, absence)) parts.push_back(std::move(reason));
  if (wanted.guessed && !is_module_of_python(package))
    parts.push_back(message(
        "that its distribution is also called {} is a guess: no installed package refers to it", package));
  finding.summary = clauses_of(parts);
  add_evidence(snapshot, absence, finding);
  return finding;
}

// One note for everything that metadata asks for and no import reaches.
Finding unused(const Snapshot& snapshot, const std::vector<Absence>& quiet) {
  using Asker = std::pair<std::string, std::vector<std::string>>;  // a release, and what it requires
  std::vector<Asker> askers;
  std::vector<std::string> requirements;
  Finding finding{.cause = Cause::MissingPythonDependency,
                  .subject = "",
                  .module = "",
                  .summary = "",
                  .evidence = {},
                  .fixes = {},
                  .circumstances = {Circumstance::NoImportReachesIt}};
  for (const Absence& absence : quiet) {
    const MissingRequirement& asked = snapshot.missing_requirements.value[absence.requirements.front()];
    if (finding.subject.empty()) {
      finding.subject = asked.distribution;
      finding.module = asked.root;
    }
    const std::string asker = release(asked.distribution, asked.version);
    auto known = std::ranges::find(askers, asker, &Asker::first);
    if (known == askers.end()) known = askers.insert(known, Asker{asker, {}});
    known->second.push_back(asked.requirement);
    requirements.push_back(asked.requirement);
    add_evidence(snapshot, absence, finding);
  }
  std::vector<Message> parts;
  for (const auto& [asker, asks] : askers) parts.push_back(message("{} requires {}", asker, join(asks)));
  finding.summary = message_n(
      requirements.size(), "{}, which is not installed; no import that was examined reaches it",
      "{}: none of them is installed, and no import that was examined reaches one", clauses_of(parts));
  finding.fixes.push_back(InstallPackages{requirements});
  return finding;
}

// What ends an import, what ended one that nothing depends on, and what only metadata asks for.
CheckResult python_dependencies_present(const Snapshot& snapshot) {
  CheckResult result;
  std::vector<Absence> quiet;
  for (const auto& [package, absence] : absences(snapshot)) {
    const std::string root = broken_root(snapshot, absence);
    if (!root.empty()) {
      result.findings.push_back(dependency_finding(snapshot, package, absence, root));
    } else if (absence.observations.empty()) {
      quiet.push_back(absence);
    } else {
      Finding finding =
          dependency_finding(snapshot, package, absence,
                             root_of(snapshot, snapshot.observations.value[absence.observations.front()]));
      finding.circumstances.push_back(Circumstance::NothingNeedsTheImport);
      result.findings.push_back(std::move(finding));
    }
  }
  if (!quiet.empty()) result.findings.push_back(unused(snapshot, quiet));
  return result;
}

Message nothing_to_look_at(const Snapshot& snapshot) {
  const bool read = snapshot.missing_requirements.state != ProbeState::NotRun;
  return read || snapshot.observations.present() ? "" : message("what the packages require was not read");
}

}  // namespace

extern const Check kPythonDependenciesPresent{
    .id = "python-dependencies-present",
    .question = "Are all Python dependencies of torch and the packages installed?",
    .needs = kPython,
    .confirmed_by_import = false,
    .not_applicable = nothing_to_look_at,
    .run = python_dependencies_present};
}  // namespace scankit::checks

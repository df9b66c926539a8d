// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/checks/check.h"
#include "doctor/checks/view.h"

namespace scankit {
namespace {

std::string nothing_needs_them(const Snapshot& snapshot) {
  std::vector<std::string> absent;
  for (const std::string& module : snapshot.modules) {
    const bool needed = !needing_importers(snapshot, module).empty() || was_asked_for(snapshot, module);
    if (needed || selected_copy(snapshot, module)) return "";
    absent.push_back(module);
  }
  return absent.empty() ? say("no module is under diagnosis")
                        : say("not installed, and nothing that is installed needs it: {}", join(absent));
}

std::string how_it_is_imported(const Importer& importer) {
  const std::string package = importer.package + (importer.version.empty() ? "" : " " + importer.version);
  const std::string place = importer.file + ":" + std::to_string(importer.line);
  if (!importer.masked) return say("{} imports it ({})", package, place);
  if (importer.masked_value.empty())
    return say("{} imports it ({}), inside try/except ImportError", package, place);
  return say("{} imports it ({}), inside try/except ImportError: the name becomes {}", package, place,
             importer.masked_value);
}

Finding absence(const Snapshot& snapshot, const std::string& module,
                const std::vector<std::size_t>& importers) {
  Finding finding{.cause = Cause::ModuleNotBuilt,
                  .subject = importers.empty() ? module : snapshot.importers.value[importers.front()].package,
                  .module = module,
                  .summary = importers.empty()
                                 ? say("no file of {} is on this Python's path, and it was asked for", module)
                                 : say("no file of {} is on this Python's path", module)};
  if (importers.empty()) {
    const auto& asked = snapshot.modules_asked;
    const auto at = std::ranges::find(asked, module) - asked.begin();
    finding.evidence.push_back({"/modules_asked/" + std::to_string(at), module});
  }
  for (const std::size_t i : importers) {
    const Importer& importer = snapshot.importers.value[i];
    const std::string pointer = "/importers/value/" + std::to_string(i);
    if (i == importers.front()) finding.summary = clauses({finding.summary, how_it_is_imported(importer)});
    finding.evidence.push_back({pointer + "/file", importer.file});
    finding.evidence.push_back({pointer + "/line", std::to_string(importer.line)});
    if (importer.masked) finding.evidence.push_back({pointer + "/masked", "true"});
  }
  finding.fixes = module_fixes(snapshot, module, say("build {} for this Python and torch", module));
  const auto nearby = [&](std::size_t i) { return is_only_nearby(snapshot, snapshot.importers.value[i]); };
  if (!importers.empty() && !was_asked_for(snapshot, module) && std::ranges::all_of(importers, nearby)) {
    finding.severity_override = Severity::Note;
    finding.summary =
        say("{}; nothing that is installed needs it, only files of the current folder do", finding.summary);
  }
  return finding;
}

// --module may name a package of plain Python, of which no file is looked for.
bool names_a_distribution(const Snapshot& snapshot, const std::string& module) {
  const std::string top = package_key(module.substr(0, module.find('.')));
  return std::ranges::any_of(snapshot.distributions.value, [&](const Distribution& installed) {
    return package_key(installed.name) == top;
  });
}

// A copy that import cannot take (another tag, another machine, a build folder) is not this check's subject
// when it lies on the path: python-tag-fits and machine-matches name it.
CheckResult module_present(const Snapshot& snapshot) {
  CheckResult result;
  for (const std::string& module : snapshot.modules) {
    // Python files: they are there, or package-installed says that they are not.
    if (asked_package(snapshot, module) != nullptr || module == "mamba_ssm" || module == "causal_conv1d")
      continue;
    const auto importers = needing_importers(snapshot, module);
    if (importers.empty() && !was_asked_for(snapshot, module))
      continue;  // installed or not, nobody misses it
    bool on_the_path = false;
    std::vector<Evidence> elsewhere, links;
    for (const Copy& copy : copies(snapshot)) {
      if (copy->module != module) continue;
      const bool dangling = !copy->selected && copy->file_state == "vanished";
      on_the_path = on_the_path || copy->selected || (copy->sys_path_index >= 0 && !dangling);
      if (dangling) links.push_back(copy.at("path", copy->path));
      if (copy->sys_path_index < 0) elsewhere.push_back(copy.at("path", copy->path));
    }
    if (on_the_path) continue;
    if (importers.empty() && names_a_distribution(snapshot, module)) {
      result.unknown.push_back(say(
          "no compiled file of {} is on this Python's path, but a distribution of that name is installed: an "
          "import tells",
          module));
      continue;
    }
    Finding finding = absence(snapshot, module, importers);
    if (!elsewhere.empty())
      finding.summary =
          clauses({finding.summary, say("a file of it lies outside the path: {}", elsewhere.front().value)});
    finding.evidence.insert(finding.evidence.end(), elsewhere.begin(), elsewhere.end());
    if (!links.empty())
      finding.summary =
          clauses({finding.summary, say("{} is a link to a file that is not there", links.front().value)});
    finding.evidence.insert(finding.evidence.end(), links.begin(), links.end());
    result.findings.push_back(finding);
  }
  return result;
}

}  // namespace

extern const Check kModulePresent{.id = "module-present",
                                  .question = "Is every module there that an installed package imports?",
                                  .needs = kPython | kExtensions | kImporters,
                                  .settled_by_import = true,
                                  .not_applicable = nothing_needs_them,
                                  .run = module_present};
}  // namespace scankit

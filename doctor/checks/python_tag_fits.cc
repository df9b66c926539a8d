// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "doctor/checks/check.h"
#include "doctor/checks/view.h"

namespace scankit {
namespace {

std::string no_copy(const Snapshot& snapshot) {
  return copies(snapshot).empty() ? "no file of a module under diagnosis was found" : "";
}

std::string this_python(const Python& python) {
  return (python.implementation == "cpython" ? "CPython " : python.implementation + " ") + python.version +
         " (" + python.soabi + ")";
}

// "cpython-310-aarch64-linux-gnu" without its machine part: what is left is the Python it was made for.
std::string python_part(const std::string& tag) {
  const auto second = tag.find('-', tag.find('-') + 1);
  return tag.substr(0, second);
}

// Import never opens a file whose suffix is not one of the interpreter's, so the user reads "No module named
// ...".
std::optional<Finding> near_miss(const Snapshot& snapshot, const std::string& module) {
  const Python& python = snapshot.python.value;
  Finding finding{.cause = Cause::PythonAbiTagMismatch, .module = module};
  for (const Copy& copy : copies(snapshot)) {
    if (copy->module != module || suffix_fits(snapshot, *copy) || !is_meant_for_import(snapshot, *copy))
      continue;
    if (python_part(copy->tag) == python_part(python.soabi)) continue;  // another machine: machine-matches
    if (finding.subject.empty()) {
      finding.subject = copy->path;
      finding.summary = path_basename(copy->path) + " is made for " +
                        (copy->tag.empty() ? "another Python" : copy->tag) + "; " + this_python(python) +
                        " does not look at it and says \"No module named\"";
    }
    finding.evidence.push_back(copy.at("path", copy->path));
  }
  if (finding.subject.empty()) return std::nullopt;
  finding.evidence.push_back({"/python/value/soabi", python.soabi});
  return finding;
}

std::optional<Finding> missing_python_names(const Copy& copy, const Python& python) {
  const auto evidence = symbol_evidence(copy, [](const MissingSymbol& s) { return s.owner == "python"; });
  if (evidence.empty()) return std::nullopt;
  return Finding{.cause = Cause::PythonAbiTagMismatch,
                 .subject = copy->path,
                 .module = copy->module,
                 .summary = "it needs " + count(evidence.size(), "name", "names") +
                            " of Python's C interface that " + this_python(python) + " does not have, " +
                            evidence.front().value + " first",
                 .evidence = evidence};
}

CheckResult run(const Snapshot& snapshot) {
  CheckResult result;
  for (const std::string& module : snapshot.modules) {
    const auto selected = selected_copy(snapshot, module);
    auto finding =
        selected ? missing_python_names(*selected, snapshot.python.value) : near_miss(snapshot, module);
    if (!finding) continue;
    const std::string otherwise = "build or fetch " + module + " for this Python";
    finding->fixes =
        selected ? rebuild_fixes(snapshot, *selected, otherwise) : module_fixes(snapshot, module, otherwise);
    result.findings.push_back(*std::move(finding));
  }
  return result;
}

}  // namespace

extern const Check kPythonTagFits{.id = "python-tag-fits",
                                  .question = "Is each module's file made for this Python?",
                                  .needs = kPython | kExtensions | kContents,
                                  .settled_by_import = true,
                                  .not_applicable = no_copy,
                                  .run = run};
}  // namespace scankit

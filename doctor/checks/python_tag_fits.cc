// SPDX-License-Identifier: Apache-2.0
#include <optional>

#include "doctor/base/say.h"
#include "doctor/checks/check.h"
#include "doctor/checks/missing.h"
#include "doctor/checks/view.h"

namespace scankit {
namespace {

std::string this_python(const Python& python) {
  return (python.implementation == "cpython" ? "CPython " : python.implementation + " ") + python.version +
         " (" + python.soabi + ")";
}

// "cpython-310-aarch64-linux-gnu" without its machine part: what is left is the Python it was made for. The C
// library belongs to it: a Python of musl ("...-linux-musl") and one of glibc never load the same file.
std::string python_part(const std::string& tag) {
  const auto second = tag.find('-', tag.find('-') + 1);
  if (second == std::string::npos) return tag;
  const std::string_view system = std::string_view(tag).substr(second);
  for (const std::string_view libc : {"-linux-gnu", "-linux-musl"})
    if (const auto at = system.find(libc); at != std::string_view::npos)
      return tag.substr(0, second) + std::string(libc);
  return tag;
}

bool is_for_windows(const std::string& path) { return path.ends_with(".pyd"); }

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
      if (is_for_windows(copy->path)) finding.cause = Cause::Windows;
      const std::string name = path_basename(copy->path), here = this_python(python);
      finding.summary =
          copy->tag.empty()
              ? say("{} is made for another Python; {} does not look at it and says \"No module named\"",
                    name, here)
              : say("{} is made for {}; {} does not look at it and says \"No module named\"", name, copy->tag,
                    here);
    }
    finding.evidence.push_back(copy.at("path", copy->path));
  }
  if (finding.subject.empty()) return std::nullopt;
  finding.evidence.push_back({"/python/value/soabi", python.soabi});
  return finding;
}

std::optional<Finding> missing_python_names(const Copy& copy, const Python& python) {
  const auto evidence = symbol_evidence(copy, [](const MissingSymbol& s) { return s.owner == "python"; });
  const std::size_t n = evidence.size();
  if (n == 0) return std::nullopt;
  return Finding{
      .cause = Cause::PythonAbiTagMismatch,
      .subject = copy->path,
      .module = copy->module,
      .summary = say_n(n, "it needs {} name of Python's C interface that {} does not have, {} first",
                       "it needs {} names of Python's C interface that {} does not have, {} first", n,
                       this_python(python), evidence.front().value),
      .evidence = evidence};
}

// Linked with the library of one Python release, or with the C library that only Pythons of Alpine and its
// like use.
std::optional<Finding> missing_python_library(const Copy& copy, const Python& python) {
  for (std::size_t i = 0; i < copy->missing_libraries.size(); ++i) {
    const std::string& soname = copy->missing_libraries[i].soname;
    if (!is_library_of_another_python(soname)) continue;
    return Finding{.cause = Cause::PythonAbiTagMismatch,
                   .subject = copy->path,
                   .module = copy->module,
                   .summary = say("it was linked with {}, which {} does not use and which is nowhere here",
                                  soname, this_python(python)),
                   .evidence = {copy.at("missing_libraries", i, "soname", soname)}};
  }
  return std::nullopt;
}

std::optional<Finding> wrong_inside(const Copy& copy, const Python& python) {
  auto finding = missing_python_names(copy, python);
  return finding ? finding : missing_python_library(copy, python);
}

CheckResult python_tag_fits(const Snapshot& snapshot) {
  CheckResult result;
  for (const std::string& module : snapshot.modules) {
    const auto selected = selected_copy(snapshot, module);
    auto finding = selected ? wrong_inside(*selected, snapshot.python.value) : near_miss(snapshot, module);
    if (!finding) continue;
    const std::string otherwise = say("build or fetch {} for this Python", module);
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
                                  .not_applicable = no_copy_found,
                                  .run = python_tag_fits};
}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/say.h"
#include "doctor/base/version.h"
#include "doctor/checks/build_view.h"
#include "doctor/checks/check.h"

namespace scankit {
namespace {

std::string where_headers_come_from(const Python& python) {
  const auto version = Version::parse(python.version);
  const std::string series = version ? version->major_minor() : python.version;
  if (python.base_prefix == "/usr")
    return say(
        "install the headers of the distribution's Python: python{}-dev (Debian, Ubuntu), python3-devel "
        "(Fedora, RHEL)",
        series);
  if (python.kind == "conda")
    return say("conda install -p {} --force-reinstall python={}", word_for_shell(python.prefix), series);
  return say(
      "make the environment again with a Python that has its headers, by uv python install {} for instance",
      series);
}

CheckResult python_headers_found(const Snapshot& snapshot) {
  const BuildTools& tools = snapshot.build_tools.value;
  CheckResult result;
  if (tools.python_header) return result;
  if (tools.python_include.empty()) {
    result.not_checked = {say("where the headers of this Python should be")};
    return result;
  }
  const Python& python = snapshot.python.value;
  Finding finding = build_finding(
      snapshot, Cause::PythonHeadersMissing,
      say("every extension includes Python.h, and {}, where those of Python {} belong, holds none",
          tools.python_include, python.version));
  finding.evidence = {{"/build_tools/value/python_header", "false"},
                      {"/build_tools/value/python_include", tools.python_include}};
  finding.fixes = build_fixes(snapshot, Advice{where_headers_come_from(python)});
  result.findings.push_back(std::move(finding));
  return result;
}

}  // namespace

extern const Check kPythonHeadersFound{.id = "python-headers-found",
                                       .question = "Is there the Python.h of this Python?",
                                       .needs = kSources | kPython,
                                       .not_applicable = builds_no_python_module,
                                       .run = python_headers_found,
                                       .asked = sources_are_here};
}  // namespace scankit

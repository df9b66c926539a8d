// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/say.h"
#include "doctor/checks/check.h"
#include "doctor/checks/view.h"

namespace scankit {
namespace {

// Selected, or what import would take were it made for this machine (its suffix names another one).
bool matters(const Snapshot& snapshot, const Extension& extension) {
  return extension.selected ||
         (is_meant_for_import(snapshot, extension) && !selected_copy(snapshot, extension.module));
}

CheckResult machine_matches(const Snapshot& snapshot) {
  CheckResult result;
  const std::string machine = interpreter_machine(snapshot);
  if (machine.empty()) return {{}, {say("which machine this Python is made for is not known")}};
  for (const Copy& copy : copies(snapshot)) {
    if (!matters(snapshot, *copy) || copy->machine.empty() || copy->machine == machine) continue;
    // glibc says "cannot open shared object file: No such file or directory" of such a file.
    result.findings.push_back(
        {.cause = Cause::WrongMachineArch,
         .subject = copy->path,
         .module = copy->module,
         .summary = say("the file is made for {}, this Python runs on {}", copy->machine, machine),
         .evidence = {copy.at("machine", copy->machine),
                      {"/python/value/soabi", snapshot.python.value.soabi}},
         .fixes = restore_fixes(snapshot, copy, say("build or fetch {} for {}", copy->module, machine))});
  }
  return result;
}

}  // namespace

extern const Check kMachineMatches{.id = "machine-matches",
                                   .question = "Is each module's file made for this processor?",
                                   .needs = kPython | kExtensions | kContents,
                                   .settled_by_import = true,
                                   .not_applicable = no_copy_found,
                                   .run = machine_matches};
}  // namespace scankit

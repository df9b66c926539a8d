// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/check.h"
#include "doctor/checks/view.h"

namespace scankit {
namespace {

// importlib looks for PyInit_ and the module's last name in the file it chose by name.
CheckResult run(const Snapshot& snapshot) {
  CheckResult result;
  for (const Copy& copy : whole_copies(snapshot)) {
    if (copy->has_init) continue;
    if (copy->inits.empty()) {
      result.unknown.push_back(copy->path + " exports no PyInit_ function: a library, but no Python module");
      continue;
    }
    result.findings.push_back(
        {.cause = Cause::VariantNameMismatch,
         .subject = copy->path,
         .module = copy->module,
         .summary = "the file is named " + copy->module + " and holds " + join(copy->inits),
         .evidence = {copy.at("inits", 0, "", copy->inits.front())},
         .fixes = {Advice{"give the file the name of the module that it holds"}}});
  }
  return result;
}

}  // namespace

extern const Check kInitExported{.id = "init-exported",
                                 .question = "Does each file hold the module that its name says?",
                                 .needs = kExtensions | kImages,
                                 .settled_by_import = true,
                                 .not_applicable = no_module_installed,
                                 .run = run};
}  // namespace scankit

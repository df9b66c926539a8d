// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/message.h"
#include "doctor/base/text.h"
#include "doctor/checks/check.h"
#include "doctor/checks/repairs.h"
#include "doctor/checks/snapshot_queries.h"

namespace scankit::checks {
namespace {

CheckResult stack_accepted(const Snapshot& snapshot) {
  CheckResult result;
  const std::optional<bool> refused = refuses_executable_stacks(snapshot);
  if (refused == false) return result;
  for (const Copy& copy : resolved_copies(snapshot)) {
    if (copy->executable_stack.empty()) continue;
    if (!refused) {
      result.unknown.push_back(
          message("{} requests an executable stack, and whether this C library refuses it is not known",
                  copy->executable_stack.front()));
      continue;
    }
    Finding finding{.cause = Cause::ExecutableStack, .subject = copy->path, .module = copy->module};
    std::vector<std::string> names;
    for (std::size_t i = 0; i < copy->executable_stack.size(); ++i) {
      names.push_back(path_basename(copy->executable_stack[i]));
      finding.evidence.push_back(copy.at("executable_stack", i, "", copy->executable_stack[i]));
    }
    finding.summary = message(
        "an executable stack is requested by {}; since 2.41, glibc refuses to load such a file", join(names));
    finding.evidence.push_back({"/libc/value/version", snapshot.libc.value.version});
    finding.fixes = {
        executable_stack_from_the_start(snapshot),
        Advice{message("install a newer release of the package: its maker has to link the library with "
                       "-z noexecstack")}};
    result.findings.push_back(std::move(finding));
  }
  return result;
}

}  // namespace

extern const Check kStackAccepted{.id = "stack-accepted",
                                  .question = "Does this glibc accept the stack that each module requests?",
                                  .needs = kExtensions | kClosures,
                                  .confirmed_by_import = true,
                                  .not_applicable = no_module_installed,
                                  .run = stack_accepted};

}  // namespace scankit::checks

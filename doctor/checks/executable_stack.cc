// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/message.h"
#include "doctor/base/text.h"
#include "doctor/base/version.h"
#include "doctor/checks/check.h"
#include "doctor/checks/snapshot_queries.h"

namespace scankit::checks {
namespace {

// glibc 2.41, NEWS: dlopen no longer makes the stack of a running process executable. The tunable glibc.rtld.execstack
// with the value 2 gives the process such a stack from its start.
constexpr const char* kTunable = "glibc.rtld.execstack=2";

bool refuses_executable_stacks(const LibC& libc) {
  return libc.kind == "glibc" && meets(libc.version, ">=2.41");
}

// The tunables that are set already stay; they are separated by colons.
Fix executable_from_the_start(const Snapshot& snapshot) {
  const auto set = snapshot.environment.find("GLIBC_TUNABLES");
  const bool empty = set == snapshot.environment.end() || set->second.empty();
  return SetEnvironment{"GLIBC_TUNABLES", empty ? kTunable : set->second + ":" + kTunable};
}

CheckResult stack_accepted(const Snapshot& snapshot) {
  CheckResult result;
  if (!refuses_executable_stacks(snapshot.libc.value)) return result;
  const auto tunables = snapshot.environment.find("GLIBC_TUNABLES");
  if (tunables != snapshot.environment.end() && tunables->second.find(kTunable) != std::string::npos)
    return result;
  for (const Copy& copy : resolved_copies(snapshot)) {
    if (copy->executable_stack.empty()) continue;
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
        executable_from_the_start(snapshot),
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

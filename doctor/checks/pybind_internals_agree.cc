// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/checks/check.h"
#include "doctor/checks/view.h"

namespace scankit {
namespace {

std::string none_with_pybind(const Snapshot& snapshot) {
  const auto all = whole_copies(snapshot);
  const bool any = std::ranges::any_of(all, [](const Copy& copy) { return !copy->pybind_internals.empty(); });
  return any ? "" : say("no module under diagnosis is made with pybind11");
}

// Modules with another id keep their types to themselves, and that is as meant until one of them asks for a
// type of the other: only an import that fails for want of a type makes the difference a fault.
const Observation* wants_a_type(const Snapshot& snapshot, const std::string& module) {
  const Observation* seen = deciding_import(snapshot, module);
  if (seen == nullptr || seen->outcome != "error") return nullptr;
  // pybind11, detail/class.h and pybind11.h. The same words come where the other module was not imported at
  // all.
  return seen->message.find("referenced unknown base type") != std::string::npos ? seen : nullptr;
}

Finding strangers(const Snapshot& snapshot, const Copy& copy, const Copy& other, const Observation& seen) {
  const auto at = static_cast<std::size_t>(&seen - snapshot.observations.value.data());
  return {
      .cause = Cause::PybindInternalsMismatch,
      .subject = copy->path,
      .module = copy->module,
      .summary = say(
          "its import fails with \"{}\": it keeps its types under {}, {} keeps them under {}, and neither "
          "sees those of the other",
          seen.message, copy->pybind_internals, other->module, other->pybind_internals),
      .evidence = {copy.at("pybind_internals", copy->pybind_internals),
                   other.at("pybind_internals", other->pybind_internals),
                   {"/observations/value/" + std::to_string(at) + "/message", seen.message}},
      .fixes = rebuild_fixes(snapshot, copy,
                             say("rebuild {} with the pybind11 release of {}", copy->module, other->module))};
}

CheckResult pybind_internals_agree(const Snapshot& snapshot) {
  CheckResult result;
  const auto all = whole_copies(snapshot);
  for (const Copy& copy : all) {
    const Observation* seen = wants_a_type(snapshot, copy->module);
    if (seen == nullptr || copy->pybind_internals.empty()) continue;
    const auto other = std::ranges::find_if(all, [&](const Copy& candidate) {
      return candidate->module != copy->module && !candidate->pybind_internals.empty() &&
             candidate->pybind_internals != copy->pybind_internals;
    });
    if (other != all.end()) result.findings.push_back(strangers(snapshot, copy, *other, *seen));
  }
  return result;
}

}  // namespace

extern const Check kPybindInternalsAgree{
    .id = "pybind-internals-agree",
    .question = "Do modules that share C++ types keep them in one place?",
    .needs = kExtensions,
    .not_applicable = none_with_pybind,
    .run = pybind_internals_agree};
}  // namespace scankit

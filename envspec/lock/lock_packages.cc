// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "doctor/base/say.h"
#include "doctor/checks/view.h"
#include "doctor/probes/python/python_text.h"
#include "envspec/check/outcome.h"
#include "envspec/lock/lock_drift.h"

namespace scankit {
namespace {

// scankit itself looks at the environment and is no part of it.
constexpr const char* kOurselves = "scankit";

std::vector<Fix> install(const LockedDistribution& locked) {
  if (locked.name.starts_with("scankit-")) {
    std::string module = locked.name.substr(std::string_view("scankit-").size());
    for (char& c : module)
      if (c == '-') c = '_';
    return {InstallModule{module}};
  }
  return {InstallPackages{{locked.name + "==" + locked.version}}};
}

void compare_distribution(Outcome& outcome, const LockView& view, const LockedDistribution& locked,
                          const Distribution* here, std::size_t index) {
  if (here != nullptr && here->version == locked.version) return;
  Finding finding = lock_finding(view, Cause::DriftLockPackage, locked.name, "");
  finding.fixes = install(locked);
  if (here == nullptr) {
    finding.summary = say("{} locks {} {}, and it is not installed", view.file, locked.name, locked.version);
  } else {
    finding.summary =
        say("{} locks {} {}, and {} is installed", view.file, locked.name, locked.version, here->version);
    finding.evidence.push_back({"/distributions/value/" + std::to_string(index) + "/version", here->version});
  }
  if (is_installers_own(locked.name)) finding.severity_override = Severity::Note;
  drifted(outcome, std::move(finding));
}

}  // namespace

Outcome locked_packages(const LockView& view) {
  Outcome outcome = asked("lock-packages", say("Are the locked packages installed, and no others?"));
  const auto& installed = view.subject.snapshot.distributions;
  if (!fact_is_known(outcome, installed.state, why_missing(installed)) &&
      installed.state != ProbeState::Absent)
    return outcome;
  std::map<std::string, std::size_t> places;  // the first of a name is the one that counts
  for (std::size_t i = 0; i < installed.value.size(); ++i)
    places.emplace(normalized_name(installed.value[i].name), i);
  for (const LockedDistribution& locked : view.lock.distributions) {
    const auto place = places.find(locked.name);
    const bool there = place != places.end();
    const std::size_t index = there ? place->second : 0;
    compare_distribution(outcome, view, locked, there ? &installed.value[index] : nullptr, index);
  }
  for (const auto& [name, index] : places) {
    if (name.empty() || name == kOurselves || find_locked(view.lock, name) != nullptr) continue;
    const Distribution& extra = installed.value[index];
    Finding finding =
        lock_finding(view, Cause::DriftLockPackageExtra, name,
                     say("{} {} is installed, and {} does not hold it", name, extra.version, view.file));
    finding.evidence.push_back({"/distributions/value/" + std::to_string(index) + "/version", extra.version});
    finding.fixes = {Advice{say("uninstall it, or lock it: scankit env lock")}};
    if (is_installers_own(name)) finding.severity_override = Severity::Note;
    drifted(outcome, std::move(finding));
  }
  return outcome;
}

}  // namespace scankit

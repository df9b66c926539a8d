// SPDX-License-Identifier: Apache-2.0
#include "envspec/lock/lock_drift.h"

#include <algorithm>
#include <set>

#include "doctor/base/say.h"
#include "doctor/base/version.h"
#include "doctor/checks/view.h"
#include "envspec/check/outcome.h"

namespace scankit {
namespace {

// One value of the lock against what is here; one that the lock does not hold demands nothing.
struct Value {
  std::string what, locked, here;
};

void compare_values(Outcome& outcome, const LockView& view, Cause cause, const std::string& subject,
                    const std::string& pointer, const std::vector<Value>& values,
                    const std::vector<Fix>& fixes) {
  for (const Value& value : values) {
    if (value.locked.empty() || value.locked == value.here) continue;
    const std::string here = value.here.empty() ? say("nothing") : value.here;
    Finding finding =
        lock_finding(view, cause, subject,
                     say("{} locks {} {}, and {} is here", view.file, value.what, value.locked, here));
    if (!value.here.empty() && value.what == subject) finding.evidence.push_back({pointer, value.here});
    finding.fixes = fixes;
    drifted(outcome, std::move(finding));
  }
}

bool older(const std::string& here, const std::string& locked) {
  const auto a = Version::parse(here), b = Version::parse(locked);
  return a && b && *a < *b;
}

void check_locked_driver(Outcome& outcome, const LockView& view) {
  const LockedMachine& locked = view.lock.machine;
  const Probed<std::string>& driver = view.subject.facts.driver;
  if (locked.driver.empty()) return;
  if (!driver.present()) {
    // A login node or an image has none, and that is no drift: the machine that runs the code is another one.
    if (driver.state == ProbeState::Absent)
      outcome.not_checked.push_back(say("the driver: {} was locked, and none is here", locked.driver));
    else
      fact_is_known(outcome, driver.state, why_missing(driver));
    return;
  }
  if (driver.value == locked.driver) return;
  const bool is_older = older(driver.value, locked.driver);
  Finding finding =
      lock_finding(view, Cause::DriftLockMachine, "driver",
                   say("{} locks {} {}, and {} is here", view.file, "driver", locked.driver, driver.value));
  finding.severity_override =
      is_older ? Severity::Warning : Severity::Note;  // a newer one runs what an older one ran
  finding.evidence.push_back({"/driver/value/version", driver.value});
  drifted(outcome, std::move(finding));
}

void check_locked_gpus(Outcome& outcome, const LockView& view) {
  const auto& locked = view.lock.machine.gpus;
  const Probed<std::vector<std::string>>& gpus = view.subject.facts.gpus;
  if (locked.empty() || !gpus.present()) {
    if (!locked.empty() && !gpus.present())
      outcome.not_checked.push_back(say("the GPUs: {}", why_missing(gpus)));
    return;
  }
  for (const std::string& gpu : gpus.value) {
    if (std::ranges::find(locked, gpu) != locked.end()) continue;
    Finding finding =
        lock_finding(view, Cause::DriftLockMachine, gpu,
                     say("a GPU of kind {} is here, and {} knows none of that kind", gpu, view.file));
    finding.severity_override = Severity::Note;  // whether the code runs there is the doctor's question
    drifted(outcome, std::move(finding));
  }
}

}  // namespace

Finding lock_finding(const LockView& view, Cause cause, std::string subject, std::string summary) {
  Finding finding;
  finding.cause = cause;
  finding.subject = std::move(subject);
  finding.summary = std::move(summary);
  finding.demanded_by = FileLine{view.file, 0};
  return finding;
}

bool fact_is_known(Outcome& outcome, ProbeState state, const std::string& why) {
  if (state == ProbeState::Present) return true;
  if (state != ProbeState::Absent) not_known(outcome, why);
  return false;
}

bool is_installers_own(const std::string& distribution) {
  static const std::set<std::string> names = {"pip", "setuptools", "wheel", "uv", "distribute"};
  return names.contains(distribution);
}

Outcome locked_python(const LockView& view) {
  Outcome outcome = asked("lock-python", say("Is the Python the locked one?"));
  const Probed<Python>& python = view.subject.snapshot.python;
  if (!fact_is_known(outcome, python.state, why_missing(python)) && python.state != ProbeState::Absent)
    return outcome;
  const LockedPython& locked = view.lock.python;
  compare_values(outcome, view, Cause::DriftLockPython, "python", "/python/value/version",
                 {{"python", locked.version, python.value.version},
                  {"implementation", locked.implementation, python.value.implementation},
                  {"SOABI", locked.soabi, python.value.soabi}},
                 {Advice{say("make the environment anew with Python {}", locked.version)}});
  return outcome;
}

Outcome locked_torch(const LockView& view) {
  Outcome outcome = asked("lock-torch", say("Is torch the locked build?"));
  const Probed<Torch>& torch = view.subject.snapshot.torch;
  if (!view.lock.torch) {
    left_out(outcome, say("the lock holds no torch"));
    return outcome;
  }
  if (!fact_is_known(outcome, torch.state, why_missing(torch)) && torch.state != ProbeState::Absent)
    return outcome;
  const LockedTorch& locked = *view.lock.torch;
  const LockedDistribution* wheel = find_locked(view.lock, "torch");
  std::vector<Fix> fixes;
  if (wheel != nullptr) fixes.push_back(InstallPackages{{"torch==" + wheel->version}, true});
  compare_values(outcome, view, Cause::DriftLockTorch, "torch", "/torch/value/version",
                 {{"torch", locked.version, torch.value.version},
                  {"CUDA", locked.cuda, torch.value.cuda},
                  {"ROCm", locked.hip, torch.value.hip},
                  {"string ABI", locked.string_abi, torch.value.string_abi},
                  {"the commit of torch", locked.git, torch.value.git}},
                 fixes);
  return outcome;
}

Outcome locked_machine(const LockView& view) {
  Outcome outcome = asked("lock-machine", say("Can this machine run what was locked?"));
  const Snapshot& here = view.subject.snapshot;
  const LockedMachine& locked = view.lock.machine;
  const std::string processor = processor_of(here);
  if (processor.empty())
    fact_is_known(outcome, ProbeState::Failed, say("no file tells the processor that this is made for"));
  else
    compare_values(outcome, view, Cause::DriftLockMachine, "processor", "/os/value/machine",
                   {{"processor", locked.architecture, processor}}, {});
  if (fact_is_known(outcome, here.libc.state, why_missing(here.libc)) &&
      older(here.libc.value.version, locked.libc_version)) {
    Finding finding = lock_finding(view, Cause::DriftLockMachine, here.libc.value.kind,
                                   say("{} locks {} {}, and {} is here", view.file, locked.libc,
                                       locked.libc_version, here.libc.value.version));
    finding.severity_override = Severity::Warning;  // what needs the newer one is named by the doctor
    drifted(outcome, std::move(finding));
  }
  check_locked_driver(outcome, view);
  check_locked_gpus(outcome, view);
  return outcome;
}

}  // namespace scankit

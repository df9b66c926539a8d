// SPDX-License-Identifier: Apache-2.0
// What no machine of a test run has: a driver and GPUs that are the locked ones, and that are not.
#include "envspec/lock/lock_drift.h"

#include <gtest/gtest.h>

#include "envspec/lock/lock.h"

namespace scankit {
namespace {

Snapshot machine(const std::string& driver, const std::string& sm) {
  Snapshot snapshot;
  Os os;
  os.machine = "x86_64";
  snapshot.os = Probed<Os>::of(os);
  snapshot.libc = Probed<LibC>::of({"glibc", "2.36", "/lib/libc.so.6"});
  Driver here;
  here.version = driver;
  snapshot.driver = driver.empty() ? Probed<Driver>::absent("no driver") : Probed<Driver>::of(here);
  Gpu gpu;
  gpu.sm = sm;
  snapshot.gpus =
      sm.empty() ? Probed<std::vector<Gpu>>::absent("no GPU") : Probed<std::vector<Gpu>>::of({gpu});
  return snapshot;
}

// "error subject; ...", or the state: "passed", "unknown", "passed, 1 not checked".
std::string answer(const Snapshot& locked, const Snapshot& here) {
  Subject subject;
  subject.snapshot = here;
  subject.facts = facts_of(here);
  const EnvironmentLock lock = lock_facts(locked);
  const Outcome outcome = locked_machine({"L", lock, subject});
  std::string text;
  for (const Finding& finding : outcome.findings) {
    EXPECT_EQ(finding.cause, Cause::DriftLockMachine);
    const char* names[] = {"note", "warning", "error"};
    text += (text.empty() ? "" : "; ") + std::string(names[static_cast<int>(finding.severity())]) + " " +
            finding.subject;
  }
  if (!text.empty()) return text;
  if (outcome.state == CheckState::Unknown) return "unknown";
  return outcome.not_checked.empty()
             ? "passed"
             : "passed, " + std::to_string(outcome.not_checked.size()) + " not checked";
}

const Snapshot kLocked = machine("580.65.06", "90");

TEST(LockedMachine, IsTheOneThatWasLocked) { EXPECT_EQ(answer(kLocked, kLocked), "passed"); }

TEST(LockedMachine, TakesAnOlderDriverForWorseThanANewerOne) {
  EXPECT_EQ(answer(kLocked, machine("570.26", "90")), "warning driver");
  EXPECT_EQ(answer(kLocked, machine("590.1", "90")), "note driver");
}

TEST(LockedMachine, NamesAGpuOfAnotherKind) {
  EXPECT_EQ(answer(kLocked, machine("580.65.06", "100")), "note sm_100");
}

TEST(LockedMachine, IsNotJudgedWhereItHasNoGpu) {
  EXPECT_EQ(answer(kLocked, machine("", "")), "passed, 2 not checked");
  EXPECT_EQ(answer(machine("", ""), machine("580.65.06", "90")), "passed");  // demanded by nothing
}

TEST(LockedMachine, HasAnotherProcessorOrAnOlderCLibrary) {
  Snapshot here = kLocked;
  here.os.value.machine = "aarch64";
  EXPECT_EQ(answer(kLocked, here), "error processor");
  here = kLocked;
  here.libc.value.version = "2.17";
  EXPECT_EQ(answer(kLocked, here), "warning glibc");
}

TEST(LockedMachine, IsUnknownWhereNothingTellsIt) {
  Snapshot here = kLocked;
  here.os.value.machine = "";
  EXPECT_EQ(answer(kLocked, here), "unknown");
  here.python.value.soabi =
      "cpython-311-x86_64-linux-gnu";  // of an unpacked root: what its Python is made for
  EXPECT_EQ(answer(kLocked, here), "passed");
  here = kLocked;
  here.driver = Probed<Driver>::failed("unreadable");
  EXPECT_EQ(answer(kLocked, here), "unknown");
}

}  // namespace
}  // namespace scankit

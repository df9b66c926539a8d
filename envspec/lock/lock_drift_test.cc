// SPDX-License-Identifier: Apache-2.0
// What no machine of a test run has: a driver and GPUs that are the locked ones, and that are not.
#include <gtest/gtest.h>

#include "envspec/check/findings_test.h"
#include "envspec/lock/lock.h"

namespace scankit::envspec {
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
  EXPECT_EQ(answer(machine("", ""), machine("", "")), "passed");
}

// An older one is worse, and of two texts that are no versions nobody knows which is older.
TEST(LockedMachine, TakesWhatIsNotAVersionForNoOlderOne) {
  EXPECT_EQ(answer(kLocked, machine("unknown", "90")), "note driver");
  EXPECT_EQ(answer(machine("unknown", "90"), kLocked), "note driver");
  Snapshot here = kLocked;
  here.libc.value.version = "unknown";
  EXPECT_EQ(answer(kLocked, here), "passed");
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

using Lines = std::vector<std::string>;

// The answer to one question about an environment that was locked as `locked`.
template <class Question>
Lines answer_to(Question question, const EnvironmentLock& lock, const Snapshot& here) {
  Subject subject;
  subject.snapshot = here;
  subject.facts = facts_of(here);
  return test::in_words(question({"L", lock, subject}));
}

Snapshot environment() {
  Snapshot snapshot;
  snapshot.modules = {"m"};
  Python python;
  python.version = "3.11.7";
  python.implementation = "cpython";
  python.soabi = "cpython-311-x86_64-linux-gnu";
  snapshot.python = Probed<Python>::of(python);
  Torch torch;
  torch.version = "2.11.0+cu130";
  torch.cuda = "13.0";
  torch.string_abi = "new";
  torch.git = "70d9";
  snapshot.torch = Probed<Torch>::of(torch);
  snapshot.distributions = Probed<std::vector<Distribution>>::of(
      {{.name = "torch", .version = "2.11.0+cu130"}, {.name = "pip", .version = "24.0"}});
  return snapshot;
}

TEST(LockedPython, IsComparedWordByWord) {
  const EnvironmentLock lock = lock_facts(environment());
  EXPECT_EQ(answer_to(locked_python, lock, environment()), Lines{"passed"});
  Snapshot here = environment();
  here.python.value.version = "3.12.1";
  here.python.value.soabi = "cpython-312-x86_64-linux-gnu";
  const std::string fix = ": recreate the environment with Python 3.11.7";
  EXPECT_EQ(answer_to(locked_python, lock, here),
            (Lines{"error drift_lock_python python [/python/value/version]" + fix,
                   "error drift_lock_python python" + fix}));
  here.python = Probed<Python>::failed("unreadable");
  EXPECT_EQ(answer_to(locked_python, lock, here), Lines{"unknown"});
  here.python = Probed<Python>::absent("none");
  EXPECT_EQ(answer_to(locked_python, lock, here), Lines(3, "error drift_lock_python python" + fix));
}

TEST(LockedTorch, IsTheLockedBuild) {
  EnvironmentLock lock = lock_facts(environment());
  EXPECT_EQ(answer_to(locked_torch, lock, environment()), Lines{"passed"});
  Snapshot here = environment();
  here.torch.value.version = "2.11.0+cpu";
  here.torch.value.cuda = "";
  const std::string fix = ": reinstall torch==2.11.0+cu130";
  EXPECT_EQ(answer_to(locked_torch, lock, here),
            (Lines{"error drift_lock_torch torch [/torch/value/version]" + fix,
                   "error drift_lock_torch torch" + fix}));
  here.torch = Probed<Torch>::failed("unreadable");
  EXPECT_EQ(answer_to(locked_torch, lock, here), Lines{"unknown"});
  here.torch = Probed<Torch>::absent("not installed");
  EXPECT_EQ(answer_to(locked_torch, lock, here), Lines(4, "error drift_lock_torch torch" + fix));
  lock.distributions.clear();  // torch of a source tree
  EXPECT_EQ(answer_to(locked_torch, lock, here), Lines(4, "error drift_lock_torch torch"));
  lock.torch.reset();
  EXPECT_EQ(answer_to(locked_torch, lock, environment()), Lines{"left out"});
}

TEST(LockedPackages, AreInstalledAndNoOthers) {
  Snapshot locked = environment();
  locked.distributions.value.push_back({.name = "scankit-selective-scan-cuda", .version = "1"});
  const EnvironmentLock lock = lock_facts(locked);
  EXPECT_EQ(answer_to(locked_packages, lock, locked), Lines{"passed"});
  Snapshot here = locked;
  here.distributions.value = {{.name = "Pip", .version = "25.0"},
                              {.name = "scankit", .version = "1"},
                              {.name = "", .version = "1"},  // metadata without a name
                              {.name = "torch", .version = "2.10"},
                              {.name = "torch", .version = "2.11.0+cu130"},  // import takes the first
                              {.name = "setuptools", .version = "1"},
                              {.name = "numpy", .version = "2"}};
  const std::string extra = ": uninstall it, or lock it: scankit env lock";
  EXPECT_EQ(
      answer_to(locked_packages, lock, here),
      (Lines{"note drift_lock_package pip [/distributions/value/0/version]: install pip==24.0",
             "error drift_lock_package scankit-selective-scan-cuda: fix selective_scan_cuda",
             "error drift_lock_package torch [/distributions/value/3/version]: install torch==2.11.0+cu130",
             "warning drift_lock_package_extra numpy [/distributions/value/6/version]" + extra,
             "note drift_lock_package_extra setuptools [/distributions/value/5/version]" + extra}));
  here.distributions = Probed<std::vector<Distribution>>::failed("unreadable");
  EXPECT_EQ(answer_to(locked_packages, lock, here), Lines{"unknown"});
  here.distributions = Probed<std::vector<Distribution>>::absent("no site-packages");
  EXPECT_EQ(answer_to(locked_packages, lock, here).size(), 3U);
}

}  // namespace
}  // namespace scankit::envspec

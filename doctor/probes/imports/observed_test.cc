// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/imports/observed.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "doctor/base/files.h"
#include "doctor/host/host.h"

namespace scankit::probes {
namespace {

using namespace std::chrono_literals;

constexpr const char* kPython = "/usr/bin/python3";

// Modules of plain Python in a folder that PYTHONPATH names: what a compiled one can do to its interpreter,
// they can.
class ObservedChild : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::access(kPython, X_OK) != 0) GTEST_SKIP() << "no " << kPython;
    ::setenv("PYTHONPATH", folder_->path().c_str(), 1);
  }
  void TearDown() override { ::unsetenv("PYTHONPATH"); }
  void module(const std::string& name, const std::string& text) const {
    std::ofstream(folder_->path() + "/" + name + ".py") << text;
  }
  std::string script(const std::string& name, const std::string& text) const {
    const std::string path = folder_->path() + "/" + name;
    std::ofstream(path) << text;
    ::chmod(path.c_str(), 0755);
    return path;
  }
  Result<TemporaryDirectory> folder_ = TemporaryDirectory::create("observed");
};

Observation first(const ChildAnswer& answer) {
  return answer.imports.empty() ? Observation{} : answer.imports[0];
}

TEST_F(ObservedChild, ReportsTheFileOfAModuleThatImports) {
  module("fine",
         "print('noise' * 1000)\nimport os, sys\nos.write(1, b'\\x00\\xff{\"event\": \"end\"}\\n')\n");
  const Observation seen = first(import_in_child(kPython, {"fine"}, 20s));
  EXPECT_EQ(seen.outcome, "ok");
  EXPECT_EQ(seen.file, folder_->path() + "/fine.py");
}

TEST_F(ObservedChild, ImportsWithoutTheCurrentDirectoryWhereTheNameIsAStrangers) {
  const auto clone = TemporaryDirectory::create("observed");
  std::ofstream(clone->path() + "/of_nobody.py") << "";
  module("fine", "");
  std::ofstream(clone->path() + "/fine.py") << "raise RuntimeError('obeyed')\n";
  const std::string before = current_directory();
  ASSERT_EQ(::chdir(clone->path().c_str()), 0);
  EXPECT_EQ(first(import_in_child(kPython, {"of_nobody"}, 20s)).outcome, "ok");
  EXPECT_EQ(first(import_in_child(kPython, {"fine"}, 20s)).message, "obeyed");
  EXPECT_EQ(first(import_in_child(kPython, {"of_nobody"}, 20s, {}, true)).exception, "ModuleNotFoundError");
  EXPECT_EQ(first(import_in_child(kPython, {"fine"}, 20s, {}, true)).outcome, "ok");
  ASSERT_EQ(::chdir(before.c_str()), 0);
}

// As a free-threaded Python does (PEP 703), by a stand-in for its two answers: real ones are tried by the test of the matrix.
TEST_F(ObservedChild, TellsWhichModuleTurnedTheGilOn) {
  module("sitecustomize", "import sys\nsys.on = False\nsys._is_gil_enabled = lambda: sys.on\n");
  module("undeclared",
         "import sys, warnings\nsys.on = True\nwarnings.warn(\"The global interpreter lock (GIL) has been "
         "enabled to \"\n"
         "    \"load module 'inner._C', which has not declared\", RuntimeWarning)\n");
  module("quiet", "import sys\nsys.on = True\n");
  module("fine", "");
  const ChildAnswer answer = import_in_child(kPython, {"fine", "undeclared", "fine"}, 20s);
  ASSERT_EQ(answer.imports.size(), 3u);
  EXPECT_EQ(english(answer.imports[0].message), "");
  EXPECT_NE(english(answer.imports[1].message).find("because inner._C does not declare"), std::string::npos);
  EXPECT_EQ(english(answer.imports[2].message), "");  // it was on before
  EXPECT_NE(english(first(import_in_child(kPython, {"quiet"}, 20s)).message).find("because quiet does not"),
            std::string::npos);
}

TEST_F(ObservedChild, KeepsTypeAndTextOfTheException) {
  module("broken", "raise ImportError('libc10.so: cannot open\\x1b[31m')\n");
  const Observation seen = first(import_in_child(kPython, {"broken"}, 20s));
  EXPECT_EQ(seen.outcome, "error");
  EXPECT_EQ(seen.exception, "ImportError");
  EXPECT_EQ(seen.message, "libc10.so: cannot open\x1b[31m");
}

TEST_F(ObservedChild, StopsAtTheFirstModuleThatFails) {
  module("broken", "raise ImportError('no')\n");
  module("fine", "");
  EXPECT_EQ(import_in_child(kPython, {"broken", "fine"}, 20s).imports.size(), 1u);
  EXPECT_EQ(import_in_child(kPython, {"fine", "broken"}, 20s).imports.size(), 2u);
}

TEST_F(ObservedChild, AttributesACrashToTheModuleThatWasBeingImported) {
  module("fine", "");
  module("crashing", "import os, signal\nos.kill(os.getpid(), signal.SIGBUS)\n");
  const ChildAnswer answer = import_in_child(kPython, {"fine", "crashing"}, 20s);
  ASSERT_EQ(answer.imports.size(), 2u);
  EXPECT_EQ(answer.imports[0].outcome, "ok");
  EXPECT_EQ(answer.imports[1].outcome, "crashed");
  EXPECT_EQ(answer.imports[1].signal, SIGBUS);
}

TEST_F(ObservedChild, AModuleThatEndsTheInterpreterDidNotImport) {
  module("leaving", "import os\nos._exit(0)\n");
  const Observation seen = first(import_in_child(kPython, {"leaving"}, 20s));
  EXPECT_EQ(seen.outcome, "crashed");
  EXPECT_EQ(seen.signal, 0);
}

TEST_F(ObservedChild, SaysWhereAHangingImportWaits) {
  module("hanging", "import time\ntime.sleep(60)\n");
  const Observation seen = first(import_in_child(kPython, {"hanging"}, 2s));
  EXPECT_EQ(seen.outcome, "timeout");
  EXPECT_NE(english(seen.message).find("hanging.py\", line 2"), std::string::npos) << seen.message;
}

TEST_F(ObservedChild, SaysWhatTheFirstErrorOfAChainDidNotFind) {
  module("chained",
         "try:\n    import not_there_at_all\nexcept ImportError as problem:\n"
         "    raise RuntimeError('Failed to import x') from problem\n");
  const Observation seen = first(import_in_child(kPython, {"chained"}, 20s));
  EXPECT_EQ(seen.exception, "RuntimeError");
  EXPECT_EQ(seen.missing, "not_there_at_all");
  EXPECT_TRUE(seen.raised_at.ends_with("chained.py:4")) << seen.raised_at;
}

TEST_F(ObservedChild, SaysWhoseDistributionIsRequired) {
  module("strict",
         "import importlib.metadata as m\n"
         "raise m.PackageNotFoundError(\"The 'tqdm>=4.27' distribution was not found and is required\")\n");
  EXPECT_EQ(first(import_in_child(kPython, {"strict"}, 20s)).missing, "tqdm");
}

TEST_F(ObservedChild, NamesTheLockThatAHangingImportWaitsFor) {
  const std::string lock = folder_->path() + "/build.lock";
  module("locked", "import fcntl, os\npath = '" + lock +
                       "'\nfirst = open(path, 'w')\nfcntl.flock(first, fcntl.LOCK_EX)\n"
                       "second = open(path, 'w')\nfcntl.flock(second, fcntl.LOCK_EX)\n");
  const Observation seen = first(import_in_child(kPython, {"locked"}, 2s));
  EXPECT_EQ(seen.outcome, "timeout");
  EXPECT_NE(english(seen.message).find("flock on " + lock), std::string::npos) << seen.message;
}

TEST_F(ObservedChild, AModuleThatClosesDescriptorsCannotForgeAnAnswer) {
  module("closing", "import os\nos.close(1)\nos.close(2)\nraise ValueError('after')\n");
  EXPECT_EQ(first(import_in_child(kPython, {"closing"}, 20s)).exception, "ValueError");
}

TEST_F(ObservedChild, AnInterpreterThatDoesNotStartIsNoFactAboutTheModule) {
  const auto noisy =
      import_in_child(script("noisy", "#!/bin/sh\necho noise; echo bad luck >&2; exit 3\n"), {"m"}, 5s);
  EXPECT_FALSE(noisy.started);
  EXPECT_NE(english(noisy.why_not).find("exited with status 3"), std::string::npos) << noisy.why_not;
  EXPECT_NE(english(noisy.why_not).find("bad luck"), std::string::npos);
  const auto hanging = import_in_child(script("hangs", "#!/bin/sh\nsleep 60\n"), {"m"}, 1s);
  EXPECT_NE(english(hanging.why_not).find("no output within 1 s"), std::string::npos) << hanging.why_not;
  const auto absent = import_in_child(folder_->path() + "/nowhere", {"m"}, 1s);
  EXPECT_NE(english(absent.why_not).find("nowhere"), std::string::npos) << absent.why_not;
}

TEST(ObservedEnvironment, KeepsWhatIsPartOfTheQuestion) {
  const char* const given[] = {"PYTHONPATH=/a", "LD_LIBRARY_PATH=/b", "PYTHONSTARTUP=/c", "PYTHONINSPECT=1",
                               nullptr};
  const std::vector<std::string> kept = {"PYTHONPATH=/a", "LD_LIBRARY_PATH=/b", "PYTHONDONTWRITEBYTECODE=1"};
  EXPECT_EQ(child_environment(given), kept);
}

Snapshot with_python() {
  Snapshot snapshot;
  snapshot.modules = {"scankit_no_such_module"};
  snapshot.python.state = ProbeState::Present;
  snapshot.python.value.requested = kPython;
  snapshot.torch.state = ProbeState::Absent;
  return snapshot;
}

TEST(ObservedImports, AreNotTriedWhereTheUserForbadeThem) {
  const auto host = make_real_host();
  const auto seen = observe_imports(*host, with_python(), {.policy = ImportPolicy::Never});
  EXPECT_EQ(seen.state, ProbeState::NotRun);
  EXPECT_EQ(seen.note, "--no-import");
}

TEST(ObservedImports, AreNotTriedAsRootOnAnotherUsersFiles) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const auto folder = TemporaryDirectory::create("owned");
  ASSERT_TRUE(folder);
  ASSERT_EQ(::chown(folder->path().c_str(), 1234, 1234), 0);
  Snapshot snapshot = with_python();
  snapshot.python.value.sys_path = {{folder->path(), "site", true}};
  const auto host = make_real_host();
  const auto seen = observe_imports(*host, snapshot, {});
  EXPECT_EQ(seen.state, ProbeState::NotRun);
  EXPECT_NE(seen.note.english().find("belongs to user 1234"), std::string::npos) << seen.note;
  const auto forced = observe_imports(*host, snapshot, {.policy = ImportPolicy::Always});
  EXPECT_EQ(forced.state, ::access(kPython, X_OK) == 0 ? ProbeState::Present : ProbeState::Failed);
}

TEST(ObservedImports, AnUnknownModuleIsTriedAloneOnly) {
  if (::access(kPython, X_OK) != 0) GTEST_SKIP() << "no " << kPython;
  const auto host = make_real_host();
  const auto seen = observe_imports(*host, with_python(), {.policy = ImportPolicy::Always});
  ASSERT_EQ(seen.value.size(), 1u);
  EXPECT_EQ(seen.value[0].variant, "bare");
  EXPECT_EQ(seen.value[0].exception, "ModuleNotFoundError");
}

// sitecustomize.py speaks on descriptor 3 in place of our program.
TEST(ObservedImports, AForgedAnswerIsHeldAgainstTheFiles) {
  if (::access(kPython, X_OK) != 0) GTEST_SKIP() << "no " << kPython;
  const auto folder = TemporaryDirectory::create("forged");
  ASSERT_TRUE(folder);
  const auto host = make_real_host();
  const auto outcome_of = [&](const std::string& file) {
    const std::string end =
        R"({"event":"start"}\n{"event":"begin","module":"M"}\n{"event":"end","module":"M","outcome":"ok","file":"F"}\n)";
    std::string program = "import os\nos.write(3, b'''" + end + "''')\nos._exit(0)\n";
    for (std::size_t at; (at = program.find("\"M\"")) != std::string::npos;)
      program.replace(at + 1, 1, with_python().modules.at(0));
    program.replace(program.find("\"F\"") + 1, 1, file);
    EXPECT_TRUE(write_file_atomically(folder->path() + "/sitecustomize.py", program));
    ::setenv("PYTHONPATH", folder->path().c_str(), 1);
    const auto seen = observe_imports(*host, with_python(), {.policy = ImportPolicy::Always});
    ::unsetenv("PYTHONPATH");
    return seen.value.empty() ? Observation{} : seen.value[0];
  };
  const std::string name = with_python().modules.at(0), real = folder->path() + "/" + name + ".abi3.so";
  const auto nowhere = outcome_of("/x/" + name + ".so");
  EXPECT_EQ(nowhere.outcome, "not-run");
  EXPECT_NE(nowhere.why_not_run.english().find("does not exist"), std::string::npos) << nowhere.why_not_run;
  EXPECT_EQ(outcome_of("").outcome, "not-run");
  const auto other = outcome_of("/bin/sh");
  EXPECT_EQ(other.outcome, "not-run") << other.exception << ": " << other.message;
  ASSERT_TRUE(write_file_atomically(real, ""));  // what it is, the other probes say
  EXPECT_EQ(outcome_of(real).outcome, "ok");
}

}  // namespace
}  // namespace scankit::probes

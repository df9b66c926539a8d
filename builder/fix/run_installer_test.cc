// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <string>

#include "builder/fix/execute.h"
#include "builder/fix/transaction.h"
#include "doctor/base/files.h"

namespace scankit::fix {
namespace {

// A shell for an installer, and a folder with the lock that it holds.
class AnInstaller : public ::testing::Test {
 protected:
  AnInstaller() { EXPECT_NE(::mkdtemp(folder_.data()), nullptr); }
  ~AnInstaller() override { (void)!::system(("rm -rf " + folder_).c_str()); }

  Result<void> run(const std::string& script, int lock = -1) const {
    return run_installer({.argv = {"/bin/sh", "-c", script}, .folder = folder_}, lock);
  }
  // The number that the script writes into the file; it is waited for.
  pid_t told(const std::string& name) const {
    for (int i = 0; i < 1000; ++i, ::usleep(10'000))
      if (const auto text = read_whole_file(path_join(folder_, name)); text && text->ends_with("\n"))
        return std::stoi(*text);
    ADD_FAILURE() << name << " was not written";
    return -1;
  }
  // A scankit, for killing.
  pid_t in_a_child(const std::function<void()>& part) const {
    const pid_t child = ::fork();
    if (child == 0) {
      part();
      ::_exit(0);
    }
    return child;
  }
  std::string folder_ = "/tmp/scankit-installer-XXXXXX";
};

bool lives(pid_t process) {
  const auto stat = read_whole_file("/proc/" + std::to_string(process) + "/stat");
  return stat && stat->find(") Z ") == std::string::npos;
}
bool ends_soon(pid_t process) {
  for (int i = 0; i < 1000 && lives(process); ++i) ::usleep(10'000);
  return !lives(process);
}

// Of another session, and no child of the installer's any more: nothing but its descent tells whose it is.
constexpr const char* kDaemon = "(setsid sh -c 'echo $$ >daemon; exec sleep 60' &) ; ";

TEST_F(AnInstaller, HearsOfNoOtherPlaceFromTheShell) {
  ASSERT_EQ(::setenv("PIP_TARGET", "/elsewhere", 1), 0);
  ASSERT_EQ(::setenv("PIP_INDEX_URL", "file:///mine", 1), 0);
  ASSERT_EQ(::setenv("PIP_PYTHON", "/elsewhere/bin/python", 1), 0);
  EXPECT_TRUE(run("test -z \"${PIP_TARGET+x}${PIP_PYTHON+x}\" && test \"$PIP_INDEX_URL\" = file:///mine"));
  ::unsetenv("PIP_TARGET");
  ::unsetenv("PIP_PYTHON");
  ::unsetenv("PIP_INDEX_URL");
}

TEST_F(AnInstaller, TellsHowItEnded) {
  EXPECT_TRUE(run("true"));
  EXPECT_NE(english(run("exit 3").error().message).find("exited with status 3"), std::string::npos);
  EXPECT_NE(english(run("exit 127").error().message).find("cannot start /bin/sh"), std::string::npos);
  EXPECT_NE(english(run("kill -9 $$").error().message).find("was killed by signal 9"), std::string::npos);
  EXPECT_NE(english(run("kill -TERM $$").error().message).find("was killed by signal 15"), std::string::npos);
}

TEST_F(AnInstaller, MayLeaveADaemonWhereItEndsWell) {
  ASSERT_TRUE(run(std::string(kDaemon) + "while ! [ -s daemon ]; do :; done"));
  const pid_t daemon = told("daemon");
  EXPECT_TRUE(lives(daemon));
  ::kill(daemon, SIGKILL);
}

TEST_F(AnInstaller, LeavesNothingWhereItsWorkIsUndone) {
  EXPECT_FALSE(run(std::string(kDaemon) + "while ! [ -s daemon ]; do :; done; exit 1"));
  EXPECT_FALSE(lives(told("daemon")));
  ASSERT_EQ(::unlink(path_join(folder_, "daemon").c_str()), 0);
  EXPECT_FALSE(run(std::string(kDaemon) + "while ! [ -s daemon ]; do :; done; kill -9 $$"));
  EXPECT_FALSE(lives(told("daemon")));
}

TEST_F(AnInstaller, IsKilledWithUsAndAllThatCameOfIt) {
  const std::string state = path_join(folder_, "state");
  const pid_t fixer = in_a_child([&] {
    const auto lock = Lock::take(state);
    (void)run(std::string(kDaemon) + "trap '' TERM HUP INT; echo $$ >installer; sleep 60", lock->descriptor())
        .has_value();
  });
  const pid_t installer = told("installer"), daemon = told("daemon");
  EXPECT_TRUE(lives(installer) && lives(daemon));
  EXPECT_FALSE(Lock::take(state));
  ::kill(fixer, SIGKILL);
  ::waitpid(fixer, nullptr, 0);
  // Whoever gets the lock finds none of them.
  bool taken = false;
  for (int i = 0; i < 1000 && !taken; ++i, ::usleep(1000)) {
    taken = Lock::take(state).has_value();
    EXPECT_FALSE(taken && (lives(installer) || lives(daemon)));
  }
  EXPECT_TRUE(taken);
  EXPECT_TRUE(ends_soon(installer) && ends_soon(daemon));
}

TEST_F(AnInstaller, IsToldOfASignalThatCameToUsAlone) {
  const pid_t fixer = in_a_child([&] {
    const Interruption interruption;
    const auto ran = run("trap 'echo 1 >got; exit 0' TERM; echo $$ >installer; while :; do sleep 0.01; done");
    ::_exit(ran ? 0 : 9);
  });
  const pid_t installer = told("installer");
  ::kill(fixer, SIGTERM);
  int status = 0;
  ::waitpid(fixer, &status, 0);
  EXPECT_EQ(told("got"), 1);
  EXPECT_FALSE(lives(installer));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 9) << status;
}

// What was installed is asked by an import, and a machine without a GPU cannot make the import of every package.
TEST(Statement, FailsUnlessTheMachineIsInTheWay) {
  const auto verified = [](const std::string& statement) {
    return verify_statement("/usr/bin/python3", statement);
  };
  if (!verified("pass")) GTEST_SKIP() << "no /usr/bin/python3 that runs";
  EXPECT_TRUE(verified("import os").value());
  const std::string said = "0 active drivers ([]). There should only be one.";
  EXPECT_FALSE(verified("raise RuntimeError('" + said + "')").value());
  EXPECT_FALSE(verified("raise RuntimeError('2 active drivers ([a, b]). There should only be one.')"));
  EXPECT_FALSE(verified("raise ImportError('" + said + "')"));
}

// A package in a directory that no path leads to but this one.
class APackage : public ::testing::Test {
 protected:
  APackage() : folder_(*TemporaryDirectory::create("scankit-package-test")) {
    (void)::setenv("PYTHONPATH", folder_.path().c_str(), 1);
    write("torch.py", "");
    write("my_ext-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: my-ext\nVersion: 1.0\n");
    write("my_ext-1.0.dist-info/RECORD", "my_ext/__init__.py,,\n");
  }
  ~APackage() override { ::unsetenv("PYTHONPATH"); }
  void write(const std::string& name, const std::string& text) const {
    const std::string path = path_join(folder_.path(), name);
    EXPECT_TRUE(make_directories(path_dirname(path)));
    EXPECT_TRUE(write_file_atomically(path, text));
  }
  Result<std::string> verified(const std::string& text, const std::vector<WheelModule>& modules = {}) const {
    write("my_ext/__init__.py", text);
    return verify_package("/usr/bin/python3", "my-ext", "1.0", modules);
  }
  TemporaryDirectory folder_;
};

TEST_F(APackage, FailsUnlessTheMachineIsInTheWay) {
  const auto works = verified("");
  if (!works) GTEST_SKIP() << english(works.error().message);
  EXPECT_EQ(*works, "");
  const std::string no_gpu = "raise RuntimeError('0 active drivers ([]). There should only be one.')\n";
  EXPECT_EQ(verified(no_gpu).value(), "import torch, my_ext");
  EXPECT_FALSE(verified("raise RuntimeError('2 active drivers ([a, b]). There should only be one.')\n"));
  EXPECT_FALSE(verified("raise ImportError('0 active drivers ([]). There should only be one.')\n"));
  EXPECT_FALSE(verified("import of_nobody\n"));
  // The compiled module is asked for without its package, and is not one.
  write("my_ext/_C.so", "no module");
  const auto broken = verified(no_gpu, {{"my_ext._C", "my_ext/_C.so"}});
  ASSERT_FALSE(broken);
  EXPECT_NE(english(broken.error().message).find("ImportError"), std::string::npos)
      << english(broken.error().message);
  EXPECT_FALSE(verified(no_gpu, {{"my_ext._D", "my_ext/_D.so"}}));
}

// A module and a torch that is enough of one: every result is what was asked for, and no GPU is found.
TEST(Verification, FailsWhereTheDeviceCodeCannotBeRead) {
  const TemporaryDirectory folder(*TemporaryDirectory::create("scankit-verify-test"));
  const auto verified = [&](const std::string& info) {
    EXPECT_TRUE(write_file_atomically(path_join(folder.path(), "torch.py"),
                                      "float32 = float64 = None\n"
                                      "class cuda: is_available = staticmethod(lambda: False)\n"
                                      "class tensor:\n"
                                      "    def __init__(self, *_, **__): pass\n"
                                      "    def item(self): return 0.0\n"
                                      "    __sub__ = lambda self, _: self\n"
                                      "    double = cpu = abs = max = lambda self: self\n"));
    EXPECT_TRUE(
        write_file_atomically(path_join(folder.path(), "selective_scan_cuda.py"),
                              "fwd = lambda *a: a\nscankit_info = lambda: {'images': [], " + info + "}\n"));
    return verify_import("/usr/bin/python3", "selective_scan_cuda", "", folder.path());
  };
  if (!verify_statement("/usr/bin/python3", "pass")) GTEST_SKIP() << "no /usr/bin/python3 that runs";
  const auto without = verified("'images_problem': None");  // --arch none
  EXPECT_TRUE(without) << english(without.error().message);
  const auto unreadable = verified("'images_problem': 'its index of device images cannot be read'");
  ASSERT_FALSE(unreadable);
  EXPECT_EQ(english(unreadable.error().message),
            "`import selective_scan_cuda` works, but its device code cannot be checked: its index of device "
            "images cannot be read");
}

}  // namespace
}  // namespace scankit::fix

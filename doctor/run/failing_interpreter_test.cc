// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "doctor/base/files.h"
#include "doctor/run/command.h"
#include "doctor/run/interpreters.h"

namespace scankit::run {
namespace {

class FailingInterpreter : public testing::Test {
 protected:
  std::string at(const std::string& name) const { return folder_.path() + "/" + name; }
  // An environment with a bin/python that may be executed.
  SeenInterpreter environment(const std::string& name) {
    const std::string python = at(name + "/bin/python");
    std::filesystem::create_directories(path_dirname(python));
    std::ofstream(python) << "#!" << at("base/python3.11") << "\n";
    std::filesystem::permissions(python, std::filesystem::perms::owner_all);
    SeenInterpreter seen;
    seen.path = python;
    return seen;
  }
  std::string frame(const std::string& name, const std::string& file) const {
    return "  File \"" + at(name) + "/lib/python3.11/" + file + "\", line 1, in <module>\n";
  }
  std::string chosen(const std::string& output, const std::vector<SeenInterpreter>& seen) const {
    const auto found = failing_interpreter(output, seen);
    return found ? found->path : "none";
  }
  TemporaryDirectory folder_ = *TemporaryDirectory::create("failing");
};

TEST_F(FailingInterpreter, IsTheOneWhosePackagesTheLastTracebackIsIn) {
  const std::vector<SeenInterpreter> seen{environment("a"), environment("b")};
  const std::string a = frame("a", "site-packages/x.py"), b = frame("b", "site-packages/y.py");
  EXPECT_EQ(chosen(a + b, seen), at("b/bin/python"));
  EXPECT_EQ(chosen(b + a, seen), at("a/bin/python"));
  // The standard library is often that of another environment's base.
  EXPECT_EQ(chosen(b + frame("a", "runpy.py"), seen), at("b/bin/python"));
  EXPECT_EQ(chosen("failed (exitcode: -11) of binary: " + at("b/bin/python3.11"), seen), at("b/bin/python"));
  EXPECT_EQ(chosen("nothing", seen), at("a/bin/python"));
}

TEST_F(FailingInterpreter, ExistsAndIsNotOfAContainer) {
  std::vector<SeenInterpreter> seen{environment("a"), environment("b")};
  seen[0].other_root = true;
  EXPECT_EQ(chosen(frame("a", "site-packages/x.py"), seen), at("b/bin/python"));
  std::filesystem::remove(seen[1].path);
  EXPECT_EQ(chosen("", seen), "none");
  EXPECT_EQ(chosen(frame("a", "site-packages/x.py"), seen), "none");
}

TEST_F(FailingInterpreter, IsFoundByItsPackagesIfNobodySawIt) {
  environment("a");
  EXPECT_EQ(chosen(frame("a", "site-packages/x.py"), {}), at("a/bin/python"));
  EXPECT_EQ(chosen(frame("gone", "site-packages/x.py"), {}), "none");
  EXPECT_EQ(chosen("/lib/python3", {}), "none");
  EXPECT_EQ(chosen("", {}), "none");
}

TEST_F(FailingInterpreter, OfACommandIsInItsFirstLine) {
  environment("a");
  EXPECT_EQ(shebang(at("a/bin/python")), std::vector<std::string>{at("base/python3.11")});
  EXPECT_EQ(interpreter_of_command({at("a/bin/python")}), std::nullopt);  // what it names is not there
  std::filesystem::create_directories(at("base"));
  std::ofstream(at("base/python3.11")) << "\177ELF";
  EXPECT_EQ(interpreter_of_command({at("a/bin/python")})->path, at("base/python3.11"));
  EXPECT_EQ(interpreter_of_command({"/bin/true"}), std::nullopt);
  EXPECT_EQ(interpreter_of_command({"/nonexistent"}), std::nullopt);
  EXPECT_EQ(interpreter_of_command({""}), std::nullopt);
}

TEST(ModuleOfFile, IsDotted) {
  EXPECT_EQ(module_of_file("/x/lib/python3.11/site-packages/torchvision/_C.so"), "torchvision._C");
  EXPECT_EQ(module_of_file("/x/site-packages/scan_cuda.cpython-311-x86_64-linux-gnu.so"), "scan_cuda");
  EXPECT_EQ(module_of_file("/x/site-packages/a-b/_C.so"), "");
  EXPECT_EQ(module_of_file("/usr/lib/libm.so.6"), "");
}

TEST(ModulesAtDeath, AreThoseOfTheKernelsFileOrTheLast) {
  SeenInterpreter seen;
  seen.modules = {"/s/a.so", "/s/b.so", "/s/c.so", "/s/d.so"};
  EXPECT_EQ(modules_at_death("", {seen}), (std::vector<std::string>{"/s/d.so", "/s/c.so", "/s/b.so"}));
  EXPECT_EQ(modules_at_death("a.so", {seen}), std::vector<std::string>{"/s/a.so"});
  EXPECT_EQ(modules_at_death("x.so", {seen}), std::vector<std::string>{});
}

}  // namespace
}  // namespace scankit::run

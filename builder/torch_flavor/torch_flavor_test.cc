// SPDX-License-Identifier: Apache-2.0
#include "builder/torch_flavor/torch_flavor.h"

#include <gtest/gtest.h>

namespace scankit::torch_flavor {
namespace {

std::string macros_of_gcc(const std::string& major, const std::string& cplusplus,
                          const std::string& abi = "1") {
  return "#define __GNUC__ " + major +
         "\n#define __GNUC_MINOR__ 2\n#define __GNUC_PATCHLEVEL__ 0\n#define __x86_64__ 1\n" +
         "#define __cplusplus " + cplusplus + "L\n#define _GLIBCXX_USE_CXX11_ABI " + abi + "\n";
}

struct Judged {
  CxxCompiler compiler;
  std::string problem;
};
Judged judge(const std::string& macros, const CxxDemand& demand) {
  Judged judged;
  judged.compiler.argv = {"/usr/bin/c++"};
  const auto fits = judge_cxx_compiler(macros, demand, judged.compiler);
  if (!fits) judged.problem = english(fits.error().message);
  return judged;
}

TEST(HostCompiler, FitsWhereStandardAbiAndProcessorDo) {
  const Judged judged = judge(macros_of_gcc("12", "202002"), {"20", 9, "new"});
  EXPECT_EQ(judged.problem, "");
  EXPECT_EQ(judged.compiler.kind, "gcc");
  EXPECT_EQ(judged.compiler.version, "12.2.0");
  EXPECT_EQ(judge(macros_of_gcc("9", "201703", "0"), {"17", 9, "old"}).problem, "");
}

// What gcc 10.2 predefines with -std=c++20 (cpp/ChangeLog of 10 and 11).
TEST(HostCompiler, AStandardThatIsNotWholeIsRefused) {
  EXPECT_EQ(judge(macros_of_gcc("10", "201709"), {"20", 9, "new"}).problem,
            "/usr/bin/c++ is gcc 10.2.0, and torch's headers need C++20, which it does not fully support");
}

TEST(HostCompiler, OlderThanTorchsHeadersTakeIsRefused) {
  EXPECT_EQ(judge(macros_of_gcc("8", "201703"), {"17", 9, "new"}).problem,
            "/usr/bin/c++ is gcc 8.2.0, and torch's headers need gcc 9 or newer");
}

TEST(HostCompiler, TheFloorOfGccIsNotThatOfClang) {
  std::string clang = macros_of_gcc("4", "202002");  // clang says that it is gcc 4.2
  clang += "#define __clang_major__ 14\n#define __clang_minor__ 0\n#define __clang_patchlevel__ 6\n";
  const Judged judged = judge(clang, {"20", 9, "new"});
  EXPECT_EQ(judged.problem, "");
  EXPECT_EQ(judged.compiler.kind + " " + judged.compiler.version, "clang 14.0.6");
  EXPECT_NE(judge(clang + "#define _LIBCPP_VERSION 14000\n", {"20", 9, "new"}).problem.find("libc++"),
            std::string::npos);
}

TEST(HostCompiler, ALibstdcxxOfTheOtherStringAbiAloneIsRefused) {
  EXPECT_EQ(judge(macros_of_gcc("12", "202002", "0"), {"20", 9, "new"}).problem,
            "/usr/bin/c++ is gcc 12.2.0, which does not support the CXX11 ABI that torch is built with");
}

TEST(HostCompiler, AnotherProcessorIsRefused) {
  std::string macros = macros_of_gcc("12", "202002");
  macros.replace(macros.find("__x86_64__"), 10, "__aarch64__");
  EXPECT_NE(judge(macros, {"20", 9, "new"}).problem.find("another processor"), std::string::npos);
  EXPECT_NE(judge(macros_of_gcc("12", "202002") + "#define __ILP32__ 1\n", {"20", 9, "new"}).problem, "");
}

TEST(HostModule, DependenciesAreReadAsMakeWritesThem) {
  const auto files =
      dependencies_in("libtorch.o: libtorch.cc /a/b.h \\\n /with\\ blank/c.h /dollar$$/d.h \\\n  /a/b.h\n");
  EXPECT_EQ(files, (std::vector<std::string>{"/a/b.h", "/dollar$/d.h", "/with blank/c.h", "libtorch.cc"}));
  EXPECT_TRUE(dependencies_in("").empty());
}

TEST(TorchEnvironment, RoomIsJudgedByWhatTheGroupMayTake) {
  Memory memory;
  memory.available = 8'000'000'000;
  EXPECT_TRUE(evaluate_resources(Probed<Memory>::of(memory), {}));
  memory.cgroup_limit = 512'000'000;
  const auto tight = evaluate_resources(Probed<Memory>::of(memory), {});
  ASSERT_FALSE(tight);
  EXPECT_EQ(english(tight.error().message),
            "compiling with torch's headers needs up to 1000 MB of memory, and 512 MB are free");
  EXPECT_TRUE(evaluate_resources({}, {{"sources", "/s", 1, 1}}));
  const auto full = evaluate_resources({}, {{"temporary files", "/full", 1'000'000, 1}});
  ASSERT_FALSE(full);
  EXPECT_NE(english(full.error().hint).find("TMPDIR"), std::string::npos);
}

}  // namespace
}  // namespace scankit::torch_flavor

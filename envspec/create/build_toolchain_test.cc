// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "envspec/create/create.h"

namespace scankit::envspec {
namespace {

// A lock of one package with code for an H100, which is to be built again, and of torch with CUDA 13.0.
class BuildToolchain : public testing::Test {
 protected:
  BuildToolchain() {
    lock_.torch = LockedTorch{.version = "2.11.0+cu130", .cuda = "13.0"};
    LockedDistribution one{.name = "scan", .version = "1.0", .source = "here"};
    one.build =
        LockedBuild{.sdist = LockedArtifact{"scan-1.0.tar.gz", std::string(64, 'a'), 9, "https://h/s"}};
    one.build->toolchain = {.compilers = {"GCC: (Debian 12.2.0-14) 12.2.0"},
                            .cuda = {"13.0"},
                            .nvcc = {"13.0.88"},
                            .code = {"sm_90"}};
    lock_.distributions = {one};
  }
  std::string refused(const std::vector<Toolkit>& toolkits) const {
    Snapshot here;
    here.toolkits.state = toolkits.empty() ? ProbeState::Absent : ProbeState::Present;
    here.toolkits.value = toolkits;
    here.environment = variables_;
    const auto answer = check_toolchain(lock_, {{"scan", "1.0", {}, ""}}, here);
    if (!answer) return english(answer.error().message) + " | " + english(answer.error().hint);
    return answer->empty() ? "" : "note: " + english(answer->front());
  }
  LockedBuild& build() { return *lock_.distributions[0].build; }

  EnvironmentLock lock_;
  std::map<std::string, std::string> variables_;
};

TEST_F(BuildToolchain, ThatIsMissingIsNamedBeforeAnythingIsMade) {
  const std::string none = refused({});
  EXPECT_NE(none.find("1 package with CUDA code must be built again, and nvcc was not found: "
                      "scan==1.0 (nvcc 13.0.88, sm_90)"),
            std::string::npos)
      << none;
  EXPECT_NE(none.find("install the CUDA 13.0 toolkit"), std::string::npos) << none;
  const std::string older = refused({{"/usr/local/cuda-12.4", "", "12.4"}});
  EXPECT_NE(
      older.find(
          "no nvcc of CUDA 13 was found, which torch 2.11.0+cu130 needs to build scan==1.0 (nvcc 13.0.88, "
          "sm_90); found: 12.4 (/usr/local/cuda-12.4)"),
      std::string::npos)
      << older;
}

// A lock may have an archive that was never built: nothing is known of its toolchain, nor of torch.
TEST_F(BuildToolchain, OfAnotherPackageSaysNothing) {
  lock_.torch.reset();
  lock_.distributions.insert(lock_.distributions.begin(),
                             LockedDistribution{.name = "plain", .version = "2.0"});
  const auto answer = check_toolchain(lock_, {{"plain", "2.0", {}, ""}, {"scan", "1.0", {}, ""}}, Snapshot{});
  ASSERT_TRUE(answer) << "toolkits that nobody looked for";
  ASSERT_EQ(answer->size(), 1u) << "and that is said";
  EXPECT_NE(english(answer->front())
                .find("whether an nvcc for scan==1.0 (nvcc 13.0.88, sm_90) is installed is not known"),
            std::string::npos);
  Snapshot here;
  here.toolkits.state = ProbeState::Absent;
  const auto none = check_toolchain(lock_, {{"plain", "2.0", {}, ""}, {"scan", "1.0", {}, ""}}, here);
  ASSERT_FALSE(none);
  EXPECT_NE(english(none.error().hint).find("install the CUDA 13.0 toolkit"), std::string::npos);
}

TEST_F(BuildToolchain, ThatMayServeIsNoObstacle) {
  EXPECT_EQ(refused({{"/usr/local/cuda-12.4", "", "12.4"}, {"/opt/cuda", "", "13.1"}}), "");
  EXPECT_TRUE(
      refused({{"/opt/cuda", "", ""}}).starts_with("note: the CUDA release of /opt/cuda is not known"))
      << "it may be right, and has not passed";
  build().toolchain.code.clear();
  EXPECT_EQ(refused({}), "") << "without device code no nvcc is needed";
  build().toolchain.code = {"sm_90"};
  lock_.conda_packages.push_back({.name = "cuda-nvcc"});
  EXPECT_EQ(refused({}), "") << "the environment brings its own";
  lock_.conda_packages.clear();
  lock_.distributions.push_back({.name = "nvidia-cuda-nvcc-cu12", .version = "12.9.86"});
  EXPECT_NE(refused({}), "") << "a wheel with ptxas and without nvcc";
  lock_.distributions.back() = {.name = "nvidia-cuda-nvcc", .version = "13.0.88"};
  EXPECT_EQ(refused({}), "");
}

// torch's cpp_extension takes CUDA_HOME, whatever else is there.
TEST_F(BuildToolchain, ThatCudaHomeNamesCountsBeforeOthers) {
  const std::vector<Toolkit> toolkits = {{"/opt/cuda-12.4", "", "12.4"},
                                         {"/usr/local/cuda-13.0", "", "13.0"}};
  EXPECT_EQ(refused(toolkits), "");
  variables_["CUDA_HOME"] = "/opt/cuda-12.4";
  EXPECT_EQ(refused(toolkits),
            "CUDA_HOME names CUDA 12.4 (/opt/cuda-12.4), and the locked torch 2.11.0+cu130 builds with CUDA "
            "13 only "
            "| export CUDA_HOME=/usr/local/cuda-13.0");
  EXPECT_NE(refused({toolkits[0]}).find("install the CUDA 13.0 toolkit and set CUDA_HOME"),
            std::string::npos);
  variables_["CUDA_HOME"] = "/usr/local/cuda-13.0";
  EXPECT_EQ(refused(toolkits), "");
  variables_ = {{"CUDA_PATH", "/opt/cuda-12.4"}};
  EXPECT_TRUE(refused(toolkits).starts_with("CUDA_PATH names CUDA 12.4"));
}

// Another toolkit that would serve is not what torch takes.
TEST_F(BuildToolchain, ThatCudaHomeNamesIsMissingOrNotKnown) {
  const Toolkit right = {"/usr/local/cuda-13.0", "", "13.0"};
  variables_["CUDA_HOME"] = "/opt/cuda-old";
  EXPECT_EQ(refused({right}),
            "CUDA_HOME is /opt/cuda-old, where bin/nvcc was not found, and scan==1.0 (nvcc 13.0.88, sm_90) "
            "must be built with it | export CUDA_HOME=/usr/local/cuda-13.0");
  EXPECT_TRUE(refused({{"/opt/cuda-12.4", "", "12.4"}})
                  .ends_with("| install the CUDA 13.0 toolkit and set CUDA_HOME to its directory"));
  variables_["CUDA_HOME"] = "/opt/cuda";
  EXPECT_TRUE(refused({{"/opt/cuda", "", ""}, right})
                  .starts_with("note: the CUDA release of /opt/cuda is not known"));
  lock_.torch.reset();
  EXPECT_TRUE(refused({right}).starts_with("CUDA_HOME is /opt/cuda, where")) << "nothing is known of torch";
}

TEST_F(BuildToolchain, DifferencesAreThoseOfWhatIsKnown) {
  LockedToolchain here = build().toolchain;
  EXPECT_EQ(toolchain_differences(build(), here, "2.11.0+cu130"), "");
  here.nvcc = {"13.1.20"};
  here.cuda = {"13.1"};
  here.compilers = {"GCC: (GNU) 14.1.0"};
  EXPECT_EQ(toolchain_differences(build(), here, ""),
            "compiler GCC: (Debian 12.2.0-14) 12.2.0 -> GCC: (GNU) 14.1.0; nvcc 13.0.88 -> 13.1.20");
  build().toolchain.nvcc.clear();  // a lock of an older scankit
  build().toolchain.compilers.clear();
  build().recorded = RecordedBuild{.torch = "2.10.0"};
  EXPECT_EQ(toolchain_differences(build(), here, "2.11.0"), "CUDA 13.0 -> 13.1; torch 2.10.0 -> 2.11.0");
}

}  // namespace
}  // namespace scankit::envspec

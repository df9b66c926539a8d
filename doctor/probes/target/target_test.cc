// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/target/target.h"

#include <gtest/gtest.h>

namespace scankit::probes {
namespace {

TEST(TargetNames, TakesChipsAndVersionsOnly) {
  for (const char* name : {"sm_50", "sm_90", "sm_121", "sm_300", "none"})
    EXPECT_EQ(gpu_name_problem(name), "");
  for (const char* name :
       {"", "90", "sm_", "sm_9", "sm_090", "sm_90a", "sm_1234", "SM_90", "h200", "sm_9.0"}) {
    EXPECT_NE(gpu_name_problem(name).find("sm_90"), std::string::npos) << name;
    EXPECT_NE(gpu_name_problem(name).find("\"" + std::string(name) + "\""), std::string::npos);
  }
  for (const char* version : {"570.86", "570.86.15", "525.105.17"})
    EXPECT_EQ(driver_version_problem(version), "");
  for (const char* version :
       {"", "570", "570.", ".86", "570.86.15.1", "570.x", "v570.86", "99999.1", "570.86 "})
    EXPECT_FALSE(driver_version_problem(version).empty()) << version;
}

Snapshot laptop() {
  Snapshot snapshot;
  snapshot.environment = {{"CUDA_VISIBLE_DEVICES", "1"}, {"LD_LIBRARY_PATH", "/x"}};
  snapshot.gpus =
      Probed<std::vector<Gpu>>::of({{.name = "NVIDIA RTX 3060", .sm = "86", .sm_source = "nvml"}});
  snapshot.driver = Probed<Driver>::absent("no driver");
  Extension file;
  file.module = "m";
  file.resolved = true;
  file.undefined = 4;
  file.missing_libraries = {{.soname = "libcuda.so.1"}, {.soname = "libcudart.so.12"}};
  file.missing_symbols = {{.name = "cuLaunchKernel", .owner = "cuda"},
                          {.name = "cudaMalloc", .owner = "cuda"},
                          {.name = "cuckoo", .owner = "own"}};
  snapshot.extensions = Probed<std::vector<Extension>>::of({file});
  snapshot.observations = Probed<std::vector<Observation>>::of(
      {{.module = "m", .outcome = "error", .message = "libcuda.so.1: cannot open shared object file"},
       {.module = "n", .outcome = "error", .message = "undefined symbol: x"}});
  return snapshot;
}

TEST(DescribeTarget, ReplacesTheGpusAndNothingElse) {
  Snapshot snapshot = laptop();
  describe_target({.gpus = {"sm_90", "sm_120"}, .driver = ""}, snapshot);
  ASSERT_EQ(snapshot.gpus.value.size(), 2u);
  EXPECT_EQ(snapshot.gpus.value[1].sm, "120");
  EXPECT_EQ(snapshot.gpus.value[1].index, 1u);
  EXPECT_EQ(snapshot.gpus.value[1].sm_source, "described");
  EXPECT_EQ(snapshot.driver.state, ProbeState::Absent);
  EXPECT_FALSE(snapshot.environment.contains("CUDA_VISIBLE_DEVICES"));
  EXPECT_TRUE(snapshot.environment.contains("LD_LIBRARY_PATH"));
  EXPECT_EQ(snapshot.described,
            (std::vector<Message>{message("GPU {}", "sm_90"), message("GPU {}", "sm_120")}));
  EXPECT_EQ(snapshot.extensions.value[0].missing_libraries.size(), 2u);
  describe_target({.gpus = {"none"}, .driver = ""}, snapshot);
  EXPECT_EQ(snapshot.gpus.state, ProbeState::Absent);
}

TEST(DescribeTarget, ADriverBringsLibcudaButNoRuntime) {
  Snapshot snapshot = laptop();
  describe_target({.gpus = {}, .driver = "570.86"}, snapshot);
  EXPECT_EQ(snapshot.driver.value.version, "570.86");
  EXPECT_EQ(snapshot.driver.value.source, "described");
  const Extension& file = snapshot.extensions.value[0];
  ASSERT_EQ(file.missing_libraries.size(), 1u);
  EXPECT_EQ(file.missing_libraries[0].soname, "libcudart.so.12");
  ASSERT_EQ(file.missing_symbols.size(), 2u);
  EXPECT_EQ(file.missing_symbols[0].name, "cudaMalloc");
  EXPECT_EQ(file.provided, 1u);
  EXPECT_NE(file.resolution_note.english().find("described driver"), std::string::npos);
  EXPECT_EQ(snapshot.observations.value[0].outcome, "not-run");
  EXPECT_EQ(snapshot.observations.value[1].outcome, "error");
  EXPECT_EQ(snapshot.gpus.value[0].sm, "86");
}

TEST(DescribeTarget, SaysNothingWhereNothingIsDescribed) {
  Snapshot snapshot = laptop();
  describe_target({}, snapshot);
  EXPECT_TRUE(snapshot.described.empty());
  EXPECT_EQ(snapshot.gpus.value[0].sm, "86");
}

}  // namespace
}  // namespace scankit::probes

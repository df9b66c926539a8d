// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "builder/fix/plan.h"

namespace scankit::fix {
namespace {

RepairStep ours(const std::string& module, const std::string& needed_by = "") {
  return {"", "corrupt_binary", module, InstallBundled{module, ""}, needed_by};
}
RepairStep packages(const std::string& about, const std::vector<std::string>& requirements) {
  ChangePackages change;
  change.change.requirements = requirements;
  return {"", "python_dependency_missing", about, change};
}

// "b | a c" of the steps' causes of being there: about, part by part.
std::string divided(std::vector<RepairStep> steps) {
  divide_into_parts(steps);
  std::string text;
  unsigned part = 0;
  for (const RepairStep& step : steps) {
    if (step.part != part) text += "| ";
    part = step.part;
    text += step.about + " ";
  }
  return text;
}

TEST(Parts, ModulesAreIndependentAndStandBeforePackages) {
  EXPECT_EQ(divided({packages("mamba_ssm", {"transformers"}), ours("selective_scan_cuda"),
                     packages("mamba_ssm", {"triton==3.6.0"}), ours("causal_conv1d_cuda")}),
            "selective_scan_cuda | causal_conv1d_cuda | mamba_ssm mamba_ssm ");
}

TEST(Parts, APackageTakesTheModuleThatItAloneNeedsWithIt) {
  EXPECT_EQ(divided({ours("selective_scan_cuda", "mamba-ssm"), packages("mamba-ssm", {"mamba-ssm==2.3.1"}),
                     ours("causal_conv1d_cuda")}),
            "causal_conv1d_cuda | mamba-ssm selective_scan_cuda ");
}

TEST(Parts, WhatStandsBelowEverythingComesFirst) {
  const RepairStep path{"", "ld_library_path_shadow", "selective_scan_cuda_core",
                        SetVariable{"LD_LIBRARY_PATH", "", "/env/bin/activate"}};
  EXPECT_EQ(divided({ours("selective_scan_cuda"), packages("torch", {"nvidia-nccl-cu13"}), path}),
            "torch | selective_scan_cuda_core | selective_scan_cuda ");
  EXPECT_EQ(divided({ours("selective_scan_cuda"), packages("vision", {"torch==2.11.0"})}),
            "vision | selective_scan_cuda ");
}

TEST(Parts, OneFileAndItsModuleGoTogether) {
  const RepairStep away{"", "several_copies", "selective_scan_cuda",
                        MoveAway{"/x/selective_scan_cuda.so", "selective_scan_cuda"}};
  EXPECT_EQ(divided({away, ours("causal_conv1d_cuda"), ours("selective_scan_cuda")}),
            "selective_scan_cuda selective_scan_cuda | causal_conv1d_cuda ");
}

TEST(Parts, EachIsAPlanOfItsOwn) {
  FixPlan plan;
  plan.kind = FixPlan::Kind::Act;
  plan.place = {"/env", "/env/site", ""};
  plan.steps = {packages("mamba_ssm", {"transformers"}), ours("selective_scan_cuda")};
  divide_into_parts(plan.steps);
  const auto parts = parts_of(plan);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(modules_of(parts[0]), std::vector<std::string>{"selective_scan_cuda"});
  EXPECT_TRUE(runs_installer(parts[1]));
  EXPECT_EQ(parts[1].place.site, "/env/site");
}

}  // namespace
}  // namespace scankit::fix

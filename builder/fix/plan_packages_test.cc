// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "builder/fix/planning_test.h"
#include "doctor/base/text.h"

namespace scankit::fix {
namespace {

TEST(Plan, PackagesComeFirstAndAreNamedWithWhatIsThere) {
  Report report = with_pip(report_of({}));
  add_error(report, InstallModule{kModule});
  add_error(report, InstallPackages{{"triton==3.6.0"}, true}, "torch", Cause::TritonIncompatible);
  const FixPlan plan = plan_of(report);
  ASSERT_EQ(plan.steps.size(), 2u);
  const auto* packages = std::get_if<ChangePackages>(&plan.steps[0].what);
  ASSERT_NE(packages, nullptr);
  EXPECT_EQ(packages->change.requirements, std::vector<std::string>{"triton==3.6.0"});
  EXPECT_TRUE(packages->change.reinstall);
  EXPECT_EQ(packages->before[0], (std::pair<std::string, std::string>("triton", "")));
  EXPECT_TRUE(runs_installer(plan));
}

TEST(Plan, IntoAnotherFolderOnlyOurOwnFilesGo) {
  Report report = with_pip(report_of({}));
  add_error(report, InstallPackages{{"triton==3.6.0"}}, "torch", Cause::TritonIncompatible);
  const FixPlan plan = plan_of(report, {.place = {.base = "/dir", .site = "/dir", .elsewhere = true}});
  EXPECT_EQ(plan.kind, FixPlan::Kind::NotRepairable);
  ASSERT_EQ(plan.advice.size(), 1u);
  EXPECT_NE(plan.advice[0].find("not possible with --target:"), std::string::npos) << plan.advice[0];
}

TEST(Plan, APackageWithoutItsCudaBuildStandsOnOurModule) {
  const FixPlan plan = plan_of(with_pip(report_of({})), {.packages = {"mamba-ssm==2.3.1"}});
  ASSERT_EQ(plan.steps.size(), 2u);
  const auto* packages = std::get_if<ChangePackages>(&plan.steps[0].what);
  ASSERT_NE(packages, nullptr);
  EXPECT_EQ(packages->statements, std::vector<std::string>{"from mamba_ssm import Mamba"});
  ASSERT_EQ(packages->commands.size(), 3u);  // the tools of its build, itself, what it depends on
  const auto& variables = packages->commands[1].environment;
  EXPECT_NE(std::ranges::find(variables, "MAMBA_SKIP_CUDA_BUILD=TRUE"), variables.end());
  // Releases since July 2026 read this one instead, and the shell that starts scankit may have it set.
  EXPECT_NE(std::ranges::find(variables, "MAMBA_KEEP_CUDA_BUILD=FALSE"), variables.end());
  EXPECT_EQ(modules_of(plan), std::vector<std::string>{kModule});
}

// mamba-ssm 1.1.1 requires causal_conv1d>=1.1.0: its dependencies would bring the newest one, built from its sources.
TEST(Plan, APackageThatAnotherOneRequiresComesFirst) {
  const FixPlan plan =
      plan_of(with_pip(report_of({})), {.packages = {"mamba_ssm==1.1.1", "causal-conv1d==1.1.3.post1"}});
  std::vector<std::string> order;
  for (const RepairStep& step : plan.steps)
    if (const auto* packages = std::get_if<ChangePackages>(&step.what))
      order.insert(order.end(), packages->change.requirements.begin(), packages->change.requirements.end());
  EXPECT_EQ(order, (std::vector<std::string>{"causal-conv1d==1.1.3.post1", "mamba_ssm==1.1.1"}));
}

// A finding may want the same package in another release, or in any.
TEST(Plan, ARepairInstallsNoOtherReleaseThanTheUserNames) {
  const auto requirements = [](const Fix& fix, const std::string& wanted) {
    Report report = with_pip(report_of({}));
    add_error(report, fix, "mamba_ssm", Cause::TritonIncompatible);
    std::vector<std::string> all;
    for (const RepairStep& step : plan_of(report, {.packages = {wanted}}).steps)
      if (const auto* packages = std::get_if<ChangePackages>(&step.what))
        for (const std::string& one : packages->change.requirements) all.push_back(one);
    return all;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(requirements(InstallPackages{{"mamba-ssm>=2.3"}}, "mamba_ssm==2.2.2"), Names{"mamba_ssm==2.2.2"});
  EXPECT_EQ(requirements(InstallModelPackage{"mamba-ssm"}, "mamba-ssm==2.3.1"), Names{"mamba-ssm==2.3.1"});
  EXPECT_EQ(requirements(InstallPackages{{"triton==3.6.0"}}, "mamba-ssm==2.3.1"),
            (Names{"triton==3.6.0", "mamba-ssm==2.3.1"}));
  // What else the repair installs is still wanted.
  EXPECT_EQ(requirements(InstallPackages{{"triton==3.6.0", "mamba-ssm>=2.3"}}, "mamba-ssm==2.3.1"),
            (Names{"triton==3.6.0", "mamba-ssm==2.3.1"}));
}

// The file that works today goes with the release that brought it, or takes that release's arguments.
TEST(Plan, AnotherReleaseOfAPackageStandsOnOurModuleToo) {
  Report report = with_pip(report_of({copy_at(kPlace.site + "/selective_scan_cuda.so", 2, true)}));
  report.snapshot.observations = Probed<std::vector<Observation>>::of(
      {{.module = kModule, .variant = "torch-first", .outcome = "ok", .file = "f.so"}});
  const PlanRequest request{.packages = {"mamba-ssm==2.3.1"}};
  EXPECT_TRUE(modules_of(plan_of(report, request)).empty());  // a user's own file, and no package yet
  report.snapshot.distributions.value.push_back({.name = "mamba_ssm", .version = "1.2.0"});
  EXPECT_EQ(modules_of(plan_of(report, request)), std::vector<std::string>{kModule});
}

TEST(Plan, ToolsOfABuildGoNowhereNearTheEnvironment) {
  const FixPlan plan = plan_of(with_pip(report_of({})), {.packages = {"mamba-ssm==2.3.1"}});
  const auto& packages = std::get<ChangePackages>(plan.steps[0].what);
  ASSERT_NE(packages.work, nullptr);
  const std::string tools = packages.work->path() + "/tools";
  const auto& argv = packages.commands[0].argv;
  const auto target = std::ranges::find(argv, "--target");
  ASSERT_NE(target, argv.end());
  EXPECT_EQ(*(target + 1), tools);
  EXPECT_NE(std::ranges::find(argv, "setuptools"), argv.end());
  const auto& variables = packages.commands[1].environment;
  EXPECT_TRUE(std::ranges::any_of(
      variables, [&](const std::string& variable) { return variable.starts_with("PYTHONPATH=" + tools); }));
  for (const std::string& variable : packages.commands[2].environment)
    EXPECT_FALSE(variable.starts_with("PYTHONPATH=")) << "what is in the tools' folder is not installed";
}

// cpp_extension of torch before 2.3 imports what setuptools 70 took out.
TEST(Plan, AnOldTorchIsBuiltAgainstWithAnOldSetuptools) {
  Report report = with_pip(report_of({}));
  const auto tools_with = [&](const std::string& torch, const std::string& setuptools) {
    report.snapshot.torch = Probed<Torch>::of({.version = torch});
    report.snapshot.distributions.value = {{.name = "setuptools", .version = setuptools},
                                           {.name = "wheel", .version = "0.46.1"},
                                           {.name = "packaging", .version = "25.0"}};
    const FixPlan plan = plan_of(report, {.packages = {"mamba-ssm==2.2.2"}});
    const auto& argv = std::get<ChangePackages>(plan.steps[0].what).commands[0].argv;
    return std::ranges::find(argv, "--target") == argv.end() ? "" : argv.back();
  };
  EXPECT_EQ(tools_with("2.0.1", "83.0.0"), "setuptools<70");
  EXPECT_EQ(tools_with("2.2.2", "70.0.0"), "setuptools<70");
  EXPECT_EQ(tools_with("2.0.1", "69.5.1"), "");
  EXPECT_EQ(tools_with("2.3.0", "83.0.0"), "");
}

// my-ext, installed from `url`, and broken.
struct LocalPackage {
  LocalPackage(const std::string& url, bool editable = false) {
    auto made = TemporaryDirectory::create("scankit-plan-test");
    EXPECT_TRUE(made);
    folder = std::make_unique<TemporaryDirectory>(std::move(*made));
    const std::string info = folder->path() + "/my_ext-1.0.dist-info";
    EXPECT_TRUE(make_directories(info));
    const std::string address = url.starts_with('/') ? "file://" + folder->path() + url : url;
    EXPECT_TRUE(write_file_atomically(info + "/direct_url.json", "{\"url\": \"" + address +
                                                                     "\", \"dir_info\": {\"editable\": " +
                                                                     (editable ? "true" : "false") + "}}"));
    report = with_pip(report_of({}));
    report.snapshot.distributions.value.push_back(
        {.name = "my-ext", .version = "1.0", .path = info, .editable = editable});
  }
  FixPlan broken(Cause cause = Cause::TorchVersionMismatch) {
    add_error(report, RebuildPackage{"my-ext", "1.0", "", {}}, "my_ext_C", cause);
    return plan_of(report);
  }
  std::unique_ptr<TemporaryDirectory> folder;
  Report report;
};

TEST(Plan, WhatCameFromAFolderComesFromThereAgain) {
  LocalPackage package("/my source");
  ASSERT_TRUE(make_directories(package.folder->path() + "/my source"));
  const FixPlan plan = package.broken();
  ASSERT_EQ(plan.steps.size(), 1u);
  const auto& packages = std::get<ChangePackages>(plan.steps[0].what);
  const std::string wanted = "my-ext @ file://" + package.folder->path() + "/my%20source";
  EXPECT_EQ(packages.change.requirements, std::vector<std::string>{wanted});
  for (const installer::InstallerCommand& command : packages.commands)
    EXPECT_EQ(std::ranges::find(command.argv, "my-ext==1.0"), command.argv.end())
        << installer::shown(command);
  const auto& variables = packages.commands.back().environment;
  EXPECT_TRUE(std::ranges::any_of(
      variables, [](const std::string& variable) { return variable.starts_with("DIST_EXTRA_CONFIG="); }));
}

TEST(Plan, NoIndexIsAskedForWhatCameFromNone) {
  LocalPackage gone("/my source");
  const FixPlan plan = gone.broken();
  EXPECT_EQ(plan.kind, FixPlan::Kind::NotRepairable);
  ASSERT_EQ(plan.advice.size(), 1u);
  EXPECT_NE(plan.advice[0].find("no longer exists"), std::string::npos) << plan.advice[0];
  LocalPackage editable("/my source", true);
  EXPECT_EQ(editable.broken().kind, FixPlan::Kind::NotRepairable);
}

TEST(Plan, AWheelRepairsDamageAndNothingElse) {
  LocalPackage wheel("/my_ext-1.0-cp311-cp311-linux_x86_64.whl");
  const std::string file = wheel.folder->path() + "/my_ext-1.0-cp311-cp311-linux_x86_64.whl";
  ASSERT_TRUE(write_file_atomically(file, "wheel"));
  EXPECT_EQ(wheel.broken().kind, FixPlan::Kind::NotRepairable);
  wheel.report.findings.clear();
  EXPECT_EQ(wheel.broken(Cause::CorruptBinary).kind, FixPlan::Kind::Act);
}

TEST(Plan, OtherPackagesAreTheUsersOwnAffair) {
  const auto host = make_real_host();
  const auto refused =
      plan_fix(*host, with_pip(report_of({})), {.packages = {"flash-attn"}, .place = kPlace});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::InvalidArgument);
}

TEST(Plan, WithoutAGpuATorchWithoutCudaStays) {
  Report report = with_pip(report_of({}));
  add_error(report, InstallPackages{{"torch==2.11.0"}, true}, kModule, Cause::CpuOnlyTorch);
  report.findings.back().fixes.push_back(InstallModule{kModule});
  EXPECT_FALSE(runs_installer(plan_of(report)));
  report.snapshot.gpus = Probed<std::vector<Gpu>>::of({{.sm = "90"}});
  EXPECT_TRUE(runs_installer(plan_of(report)));
}

}  // namespace
}  // namespace scankit::fix

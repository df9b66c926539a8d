// SPDX-License-Identifier: Apache-2.0
#include "builder/install/plan.h"

#include <gtest/gtest.h>

namespace scankit {
namespace {

constexpr const char* kModule = "selective_scan_cuda";
const InstallPlace kPlace = {"/env", "/env/lib/python3.11/site-packages", ""};

Extension copy_at(const std::string& path, int index, bool selected) {
  return {.module = kModule, .path = path, .real_path = path, .sys_path_index = index, .selected = selected};
}

Report report_of(std::vector<Extension> extensions) {
  Report report;
  Python python{.requested = "/env/bin/python", .prefix = "/env"};
  python.extension_suffixes = {".cpython-311-x86_64-linux-gnu.so", ".abi3.so", ".so"};
  python.sys_path = {
      {"/work/here", "cwd", true}, {"/extra", "pythonpath", true}, {kPlace.site, "site", true}};
  report.snapshot.python = Probed<Python>::of(python);
  report.snapshot.modules = {kModule};
  report.snapshot.extensions = Probed<std::vector<Extension>>::of(std::move(extensions));
  return report;
}

void add_error(Report& report, Fix fix) {
  report.verdict = Verdict::Broken;
  report.findings.push_back({.cause = Cause::CorruptBinary,
                             .subject = "file",
                             .module = kModule,
                             .summary = "the file is broken",
                             .fixes = {std::move(fix)}});
}

TEST(Plan, MovesWhatWouldHideTheModuleAndTheWinnerLast) {
  const std::string site = kPlace.site + "/selective_scan_cuda";
  Report report = report_of({copy_at("/work/here/selective_scan_cuda.abi3.so", 0, false),
                             copy_at("/extra/selective_scan_cuda.so", 1, true),
                             copy_at(site + ".cpython-311-x86_64-linux-gnu.so", 2, false),
                             copy_at(site + ".abi3.so", 2, false), copy_at(site + ".so", 2, false),
                             copy_at(site + ".cpython-310-x86_64-linux-gnu.so", 2, false)});
  add_error(report, InstallModule{kModule});
  const auto plan = plan_fix(report, kModule, kPlace, {});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->kind, FixPlan::Kind::Act);
  EXPECT_TRUE(plan->install);
  ASSERT_EQ(plan->moves.size(), 3u);
  EXPECT_EQ(plan->moves[0].path, site + ".so");
  EXPECT_EQ(plan->moves[1].path, site + ".cpython-311-x86_64-linux-gnu.so");
  EXPECT_EQ(plan->moves[2].path, "/extra/selective_scan_cuda.so");
}

TEST(Plan, ForAFolderThatComesFirstMovesNothing) {
  Report report =
      report_of({copy_at(kPlace.site + "/selective_scan_cuda.cpython-311-x86_64-linux-gnu.so", 2, true)});
  add_error(report, InstallModule{kModule});
  EXPECT_TRUE(plan_fix(report, kModule, {"/dir", "/dir", "export PYTHONPATH=/dir"}, {})->moves.empty());
}

TEST(Plan, OnlyMovesWhereAGoodCopyIsHidden) {
  Report report = report_of({});
  add_error(report, RemoveShadow{"/extra/selective_scan_cuda.so"});
  const auto plan = plan_fix(report, kModule, kPlace, {});
  EXPECT_EQ(plan->kind, FixPlan::Kind::Act);
  EXPECT_FALSE(plan->install);
  EXPECT_EQ(plan->moves.size(), 1u);
}

TEST(Plan, LeavesAWorkingModuleAlone) {
  Report report = report_of({copy_at(kPlace.site + "/selective_scan_cuda.so", 2, true)});
  report.verdict = Verdict::Healthy;
  report.snapshot.observations = Probed<std::vector<Observation>>::of(
      {{.module = kModule, .variant = "torch-first", .outcome = "ok", .file = "f.so"}});
  EXPECT_EQ(plan_fix(report, kModule, kPlace, {})->kind, FixPlan::Kind::NothingToDo);
}

TEST(Plan, DoesNotCallUnseenWorking) {
  Report report = report_of({});
  report.verdict = Verdict::Unknown;
  EXPECT_EQ(plan_fix(report, kModule, kPlace, {})->kind, FixPlan::Kind::Inconclusive);
}

TEST(Plan, InstallsNothingWhereThereIsNoTorch) {
  Report report = report_of({});
  add_error(report, InstallModule{kModule});
  report.snapshot.torch = Probed<Torch>::absent("no folder holds a torch package");
  EXPECT_EQ(plan_fix(report, kModule, kPlace, {})->kind, FixPlan::Kind::NotRepairable);
}

TEST(Plan, SaysWhatOnlyTheUserCanDo) {
  Report report = report_of({});
  add_error(report, Advice{"install torch"});
  const auto plan = plan_fix(report, kModule, kPlace, {});
  EXPECT_EQ(plan->kind, FixPlan::Kind::NotRepairable);
  EXPECT_EQ(plan->advice, std::vector<std::string>{"install torch"});
}

TEST(Plan, BuildsAgainForAGpuThatOurModuleLacks) {
  Extension ours = copy_at(kPlace.site + "/selective_scan_cuda.abi3.so", 2, true);
  ours.images = {{.kind = "cubin", .sm = 80}};
  Report report = report_of({ours});
  report.verdict = Verdict::Healthy;
  report.snapshot.observations = Probed<std::vector<Observation>>::of(
      {{.module = kModule, .variant = "torch-first", .outcome = "ok", .file = "f.so"}});
  EXPECT_EQ(plan_fix(report, kModule, kPlace, {{false, 80, ""}})->kind, FixPlan::Kind::NothingToDo);
  EXPECT_TRUE(plan_fix(report, kModule, kPlace, {{false, 90, ""}})->install);
}

}  // namespace
}  // namespace scankit

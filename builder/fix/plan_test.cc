// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>

#include "builder/fix/distribution.h"
#include "builder/fix/planning_test.h"

namespace scankit::fix {
namespace {

TEST(Plan, NamesTheFileAfterAFreeThreadedPython) {
  Python python{.requested = "/env/bin/python"};
  python.extension_suffixes = {".cpython-314-x86_64-linux-gnu.so", ".abi3.so", ".so"};
  compile::BuiltModule built;
  built.file = module_file(kModule, python);
  EXPECT_EQ(built.file, std::string(kModule) + ".abi3.so");
  EXPECT_TRUE(wheel_tag(built).starts_with("cp38-abi3-manylinux_2_17_"));
  python.free_threaded = true;
  python.extension_suffixes.front() = ".cpython-314t-x86_64-linux-gnu.so";
  built.file = module_file(kModule, python);
  EXPECT_EQ(built.file, std::string(kModule) + ".cpython-314t-x86_64-linux-gnu.so");
  EXPECT_TRUE(wheel_tag(built).starts_with("cp314-cp314t-manylinux_2_17_"));
  built.flavor = compile::Flavor::Torch;
  EXPECT_TRUE(wheel_tag(built).starts_with("cp314-cp314t-linux_"));
  built.file = std::string(kModule) + ".cpython-311-x86_64-linux-gnu.so";
  EXPECT_TRUE(wheel_tag(built).starts_with("cp311-cp311-linux_"));
}

TEST(Plan, MovesWhatWouldHideTheModuleAndTheWinnerLast) {
  const std::string site = kPlace.site + "/selective_scan_cuda";
  Report report = report_of({copy_at("/work/here/selective_scan_cuda.abi3.so", 0, false),
                             copy_at("/extra/selective_scan_cuda.so", 1, true),
                             copy_at(site + ".cpython-311-x86_64-linux-gnu.so", 2, false),
                             copy_at(site + ".abi3.so", 2, false), copy_at(site + ".so", 2, false),
                             copy_at(site + ".cpython-310-x86_64-linux-gnu.so", 2, false)});
  add_error(report, InstallModule{kModule});
  const FixPlan plan = plan_of(report);
  EXPECT_EQ(plan.kind, FixPlan::Kind::Act);
  EXPECT_EQ(modules_of(plan), std::vector<std::string>{kModule});
  const auto moves = hiding_copies(report.snapshot, {kModule, std::string(kModule) + ".abi3.so"}, kPlace);
  ASSERT_EQ(moves.size(), 3u);
  EXPECT_EQ(moves[0].path, site + ".so");
  EXPECT_EQ(moves[1].path, site + ".cpython-311-x86_64-linux-gnu.so");
  EXPECT_EQ(moves[2].path, "/extra/selective_scan_cuda.so");
}

TEST(Plan, ForAFolderThatComesFirstMovesNothing) {
  Report report =
      report_of({copy_at(kPlace.site + "/selective_scan_cuda.cpython-311-x86_64-linux-gnu.so", 2, true)});
  EXPECT_TRUE(hiding_copies(report.snapshot, {kModule, std::string(kModule) + ".abi3.so"},
                            {"/dir", "/dir", "export PYTHONPATH=/dir"})
                  .empty());
}

TEST(Plan, OnlyMovesWhereAGoodCopyIsHidden) {
  Report report = report_of({});
  add_error(report, RemoveShadow{"/extra/selective_scan_cuda.so"});
  const FixPlan plan = plan_of(report);
  EXPECT_EQ(plan.kind, FixPlan::Kind::Act);
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<MoveAway>(plan.steps[0].what));
}

TEST(Plan, LeavesAWorkingModuleAlone) {
  Report report = report_of({copy_at(kPlace.site + "/selective_scan_cuda.so", 2, true)});
  report.verdict = Verdict::Healthy;
  report.snapshot.observations = Probed<std::vector<Observation>>::of(
      {{.module = kModule, .variant = "torch-first", .outcome = "ok", .file = "f.so"}});
  EXPECT_EQ(plan_of(report).kind, FixPlan::Kind::NothingToDo);
}

TEST(Plan, DoesNotCallUnseenWorking) {
  Report report = report_of({});
  report.verdict = Verdict::Unknown;
  EXPECT_EQ(plan_of(report).kind, FixPlan::Kind::Inconclusive);
}

TEST(Plan, InstallsNothingWhereThereIsNoTorch) {
  Report report = report_of({});
  add_error(report, InstallModule{kModule});
  report.snapshot.torch = Probed<Torch>::absent("no directory contains a torch package");
  EXPECT_EQ(plan_of(report).kind, FixPlan::Kind::NotRepairable);
}

TEST(Plan, SaysWhatOnlyTheUserCanDo) {
  Report report = report_of({});
  add_error(report, Advice{"install torch"});
  const FixPlan plan = plan_of(report);
  EXPECT_EQ(plan.kind, FixPlan::Kind::NotRepairable);
  EXPECT_EQ(plan.advice, std::vector<std::string>{"install torch"});
}

TEST(Plan, BuildsAgainForAGpuThatOurModuleLacks) {
  Extension ours = copy_at(kPlace.site + "/selective_scan_cuda.abi3.so", 2, true);
  ours.images = {{.kind = "cubin", .sm = 80}};
  Report report = report_of({ours});
  report.verdict = Verdict::Healthy;
  report.snapshot.observations = Probed<std::vector<Observation>>::of(
      {{.module = kModule, .variant = "torch-first", .outcome = "ok", .file = "f.so"}});
  EXPECT_EQ(plan_of(report, {.wanted = {{false, 80, ""}}}).kind, FixPlan::Kind::NothingToDo);
  EXPECT_EQ(modules_of(plan_of(report, {.wanted = {{false, 90, ""}}})), std::vector<std::string>{kModule});
}

TEST(Plan, RepairsEveryBrokenModuleInOneRun) {
  Report report = report_of({});
  add_error(report, InstallModule{kModule});
  add_error(report, InstallModule{kModule}, kModule, Cause::GlibcTooOld);
  add_error(report, InstallModule{"causal_conv1d_cuda"}, "causal_conv1d_cuda");
  EXPECT_EQ(modules_of(plan_of(report)), (std::vector<std::string>{kModule, "causal_conv1d_cuda"}));
  EXPECT_EQ(modules_of(plan_of(report, {.modules = {"causal_conv1d_cuda"}})),
            std::vector<std::string>{"causal_conv1d_cuda"});
}

TEST(Plan, ASymptomIsNotRepairedBesideItsCause) {
  Report report = report_of({});
  add_error(report, RemoveShadow{"/extra/m.so", kModule}, kModule, Cause::SeveralCopies);
  add_error(report, InstallModule{kModule});
  report.findings.back().because_of = Cause::SeveralCopies;
  const FixPlan plan = plan_of(report);
  ASSERT_EQ(plan.steps.size(), 1u);
  EXPECT_TRUE(std::holds_alternative<MoveAway>(plan.steps[0].what));
}

TEST(Plan, AFileThatGoesAwayTakesItsOwnFaultsAlong) {
  Report report = report_of({});
  add_error(report, RemoveShadow{"/extra/m.so", kModule}, kModule, Cause::SeveralCopies);
  add_error(report, InstallModule{kModule}, kModule, Cause::MissingCudart);
  report.findings.back().subject = "/extra/m.so";
  EXPECT_EQ(plan_of(report).steps.size(), 1u);
  report.findings.back().subject = "/site/m.so";  // the copy behind it
  EXPECT_EQ(plan_of(report).steps.size(), 2u);
}

TEST(Plan, WhereTheCauseHasNoRepairTheSymptomsServes) {
  Report report = report_of({});
  add_error(report, Advice{"ask the administrator"}, kModule, Cause::GlibcTooOld);
  add_error(report, InstallModule{kModule});
  report.findings.back().because_of = Cause::GlibcTooOld;
  const FixPlan plan = plan_of(report);
  EXPECT_EQ(modules_of(plan), std::vector<std::string>{kModule});
  EXPECT_EQ(plan.advice, std::vector<std::string>{"ask the administrator"});
}

TEST(Plan, AModuleThatIsWrongAsAWholeIsExchangedForOurs) {
  Report report = report_of({copy_at(kPlace.site + "/selective_scan_cuda.so", 2, true)});
  report.snapshot.python.value.implementation = "cpython";
  report.snapshot.python.value.soabi = "cpython-311-x86_64-linux-gnu";
  add_error(report, Advice{"run it under a debugger"}, kModule, Cause::ImportCrash);
  const FixPlan plan = plan_of(report);
  EXPECT_EQ(modules_of(plan), std::vector<std::string>{kModule});
  EXPECT_TRUE(plan.steps[0].ask_again);
  report.findings[0].module = "flash_attn_2_cuda";  // not one that scankit carries
  EXPECT_EQ(plan_of(report).kind, FixPlan::Kind::NotRepairable);
  report.findings[0].module = kModule;
  report.snapshot.extensions.value[0].distribution = "scankit-selective-scan-cuda";
  EXPECT_EQ(plan_of(report).kind, FixPlan::Kind::NotRepairable);
}

TEST(Plan, SaysWhichTorchIsTooOldForOurModules) {
  Report report = report_of({});
  report.snapshot.python.value.implementation = "cpython";
  report.snapshot.torch = Probed<Torch>::of({.version = "1.7.1"});
  add_error(report, Advice{"build it"}, kModule, Cause::ModuleNotBuilt);
  const FixPlan plan = plan_of(report);
  EXPECT_EQ(plan.kind, FixPlan::Kind::NotRepairable);
  EXPECT_NE(plan.why.find("torch 1.13 and newer, and torch 1.7.1 is installed"), std::string::npos)
      << plan.why;
}

TEST(Plan, WithoutAScriptAVariableIsProvenAndLeftToTheShell) {
  Report report = report_of({});
  add_error(report, SetEnvironment{"LD_PRELOAD", ""}, "torch", Cause::LdLibraryPathShadow);
  const FixPlan plan = plan_of(report);
  ASSERT_EQ(plan.steps.size(), 1u);
  const auto& variable = std::get<SetVariable>(plan.steps[0].what);
  EXPECT_EQ(variable.file, "");
  EXPECT_EQ(shell_line(variable), "unset LD_PRELOAD");
}

TEST(Place, LinesAreInTheWordsOfTheShell) {
  EXPECT_EQ(path_line("bash", "/a b"), "export PYTHONPATH='/a b'${PYTHONPATH:+:$PYTHONPATH}");
  EXPECT_EQ(path_line("fish", "/a"), "set -gx PYTHONPATH /a $PYTHONPATH");
  EXPECT_EQ(start_line("bash", "export X=1"), "echo 'export X=1' >> ~/.bashrc");
  EXPECT_EQ(start_line("zsh", "export X=1"), "echo 'export X=1' >> \"${ZDOTDIR:-$HOME}\"/.zshrc");
  EXPECT_EQ(start_line("fish", "x"), "echo x >> ~/.config/fish/config.fish");
  EXPECT_EQ(start_line("dash", "x"), "echo x >> ~/.profile");
}

}  // namespace
}  // namespace scankit::fix

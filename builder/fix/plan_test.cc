// SPDX-License-Identifier: Apache-2.0
#include "builder/fix/plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "builder/fix/distribution.h"
#include "doctor/base/text.h"

namespace scankit::fix {
namespace {

constexpr const char* kModule = "selective_scan_cuda";
const InstallTarget kPlace = {"/env", "/env/lib/python3.11/site-packages", ""};

Extension copy_at(const std::string& path, int index, bool selected) {
  Extension copy;
  copy.module = kModule;
  copy.path = copy.real_path = path;
  copy.sys_path_index = index;
  copy.selected = selected;
  return copy;
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

void add_error(Report& report, Fix fix, const std::string& module = kModule,
               Cause cause = Cause::CorruptBinary) {
  report.verdict = Verdict::Broken;
  report.findings.push_back({.cause = cause,
                             .subject = "file",
                             .module = module,
                             .summary = "the file is broken",
                             .fixes = {std::move(fix)}});
}

FixPlan plan_of(const Report& report, PlanRequest request = {}) {
  const auto host = make_real_host();
  if (request.place.site.empty()) request.place = kPlace;
  auto plan = plan_fix(*host, report, request);
  EXPECT_TRUE(plan);
  return plan ? *plan : FixPlan{};
}

// A Python with pip, in a folder that is no conda and no uv project.
Report with_pip(Report report) {
  report.snapshot.python.value.has_pip = true;
  report.snapshot.python.value.kind = "venv";
  report.snapshot.distributions =
      Probed<std::vector<Distribution>>::of({{.name = "torch", .version = "2.11.0"}});
  return report;
}

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

// SPDX-License-Identifier: Apache-2.0
#include "builder/fix/local_package.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "builder/fix/plan.h"
#include "doctor/base/files.h"

namespace scankit::fix {
namespace {

using Variables = std::vector<std::pair<std::string, std::string>>;

class GivenPackage : public ::testing::Test {
 protected:
  GivenPackage() {
    Python python{.requested = "/env/bin/python", .prefix = "/env", .kind = "venv"};
    python.has_pip = true;
    report_.snapshot.python = Probed<Python>::of(python);
    report_.snapshot.distributions = Probed<std::vector<Distribution>>::of(
        {{.name = "torch", .version = "2.11.0"}, {.name = "My.Ext", .version = "0.9"}});
    SourceTree tree{.folder = "/src", .name = "my-ext", .asked = true, .build_file = "setup.py"};
    tree.cuda = {{.file = "setup.py", .line = 3, .value = "CUDAExtension"}};
    report_.snapshot.sources = Probed<SourceTree>::of(tree);
    report_.snapshot.memory = Probed<Memory>::of({.total = 64'000'000'000, .available = 32'000'000'000});
    tools().jobs = 34;
    tools().jobs_from = "ninja's default";
    report_.snapshot.gpus = Probed<std::vector<Gpu>>::of(
        {{.index = 0, .sm = "90"}, {.index = 1, .sm = "80"}, {.index = 2, .sm = "90"}});
  }
  // For a shell in which nothing is set: that of an unpacked system.
  Variables variables() const { return build_variables(*make_real_host("/nonexistent"), report_); }
  BuildTools& tools() { return report_.snapshot.build_tools.value; }
  SourceTree& tree() { return report_.snapshot.sources.value; }
  Report report_;
};

TEST_F(GivenPackage, IsBuiltForTheGpusHereAndWithinTheMemory) {
  EXPECT_EQ(variables(), (Variables{{"TORCH_CUDA_ARCH_LIST", "8.0;9.0"}}));
  tree().full_headers = true;  // 3 GB a compiler
  EXPECT_EQ(variables(), (Variables{{"MAX_JOBS", "10"}, {"TORCH_CUDA_ARCH_LIST", "8.0;9.0"}}));
  report_.snapshot.gpus.value.clear();
  tree().cuda.clear();
  EXPECT_EQ(variables(), (Variables{{"MAX_JOBS", "10"}}));
}

TEST_F(GivenPackage, KeepsWhatTheUserHasSet) {
  tree().full_headers = true;
  tools().jobs_from = "MAX_JOBS";
  tools().arch_list = "12.0";
  EXPECT_EQ(variables(), Variables{});
}

TEST_F(GivenPackage, TakesWhatItsMaintainerDeclares) {
  declared::ModuleFile file;
  file.variables = {{"MY_EXT_FORCE_BUILD", "TRUE"}, {"MAX_JOBS", "4"}, {"TORCH_CUDA_ARCH_LIST", "9.0+PTX"}};
  const auto taken = [&](const Variables& chosen) {
    Variables variables = chosen;
    take_declared_variables(*make_real_host(), file, variables);
    return variables;
  };
  ::unsetenv("MAX_JOBS");
  ::setenv("TORCH_CUDA_ARCH_LIST", "12.0", 1);
  EXPECT_EQ(taken({{"CUDA_HOME", "/cuda"}, {"MAX_JOBS", "10"}}),
            (Variables{{"CUDA_HOME", "/cuda"}, {"MAX_JOBS", "4"}, {"MY_EXT_FORCE_BUILD", "TRUE"}}));
  ::unsetenv("TORCH_CUDA_ARCH_LIST");
  // Two compilers are all that memory allows here.
  EXPECT_EQ(
      taken({{"MAX_JOBS", "2"}, {"TORCH_CUDA_ARCH_LIST", "8.0"}}),
      (Variables{{"MAX_JOBS", "2"}, {"MY_EXT_FORCE_BUILD", "TRUE"}, {"TORCH_CUDA_ARCH_LIST", "9.0+PTX"}}));
  file.file = "/src/scankit.module.yaml";
  file.distribution = "My_Ext";
  EXPECT_TRUE(check_declared_name(file, "my-ext"));
  EXPECT_FALSE(check_declared_name(file, "my-ext2"));
}

TEST_F(GivenPackage, KeepsTheSwitchesThatTheUserHasSet) {
  tools().arch_list = "9.0";
  tree().opt_in = "MAMBA_KEEP_CUDA_BUILD";
  tree().name = "mamba_ssm";
  tree().fetches_wheel = true;
  for (const char* name : {"MAMBA_KEEP_CUDA_BUILD", "MAMBA_FORCE_BUILD"}) {
    const std::string other =
        std::string(name) == "MAMBA_FORCE_BUILD" ? "MAMBA_KEEP_CUDA_BUILD" : "MAMBA_FORCE_BUILD";
    ::setenv(name, "FALSE", 1);
    EXPECT_EQ(build_variables(*make_real_host(), report_), (Variables{{other, "TRUE"}}));
    ::unsetenv(name);
  }
}

TEST_F(GivenPackage, IsBuiltWithTheToolkitAndTheSwitchesThatItsCudaPartNeeds) {
  tools().arch_list = "9.0";
  tree().opt_in = "MY_EXT_BUILD_CUDA";
  tree().name = "causal_conv1d";
  tree().fetches_wheel = true;
  report_.findings = {{.cause = Cause::NvccMissing,
                       .subject = "/src/setup.py",
                       .summary = "nvcc of another major version",
                       .fixes = {SetEnvironment{"CUDA_HOME", "/usr/local/cuda-13.0"}}},
                      {.cause = Cause::MissingCudart,
                       .subject = "/env/other.so",
                       .summary = "of another file",
                       .fixes = {SetEnvironment{"LD_LIBRARY_PATH", "/x"}}}};
  EXPECT_EQ(variables(), (Variables{{"CAUSAL_CONV1D_FORCE_BUILD", "TRUE"},
                                    {"CUDA_HOME", "/usr/local/cuda-13.0"},
                                    {"MY_EXT_BUILD_CUDA", "TRUE"}}));
  ASSERT_NE(build_error(report_), nullptr);
  EXPECT_EQ(build_error(report_)->subject, "/src/setup.py");
}

FixPlan plan_with(const Report& report, PlanRequest request) {
  request.place = {"/env", "/env/lib/python3.11/site-packages", ""};
  const auto plan = plan_fix(*make_real_host(), report, request);
  EXPECT_TRUE(plan) << english(plan.error().message);
  return plan ? *plan : FixPlan{};
}

TEST_F(GivenPackage, IsAllThatThePlanChanges) {
  report_.verdict = Verdict::Broken;
  report_.findings = {{.cause = Cause::CorruptBinary,
                       .subject = "file",
                       .module = "selective_scan_cuda",
                       .summary = "the file is broken",
                       .fixes = {InstallModule{"selective_scan_cuda"}}}};
  PlanRequest request;
  request.wheel =
      LocalWheel{"/dist/my_ext-1.0-py3-none-any.whl", "my_ext", "1.0", {{"my_ext._C", "my_ext/_C.so"}}};
  const FixPlan plan = plan_with(report_, request);
  ASSERT_EQ(plan.steps.size(), 1u);
  const auto* packages = std::get_if<ChangePackages>(&plan.steps[0].what);
  ASSERT_NE(packages, nullptr);
  ASSERT_EQ(packages->commands.size(), 2u);
  EXPECT_EQ(installer::shown(packages->commands[0]),
            "cd / && /env/bin/python -m pip --disable-pip-version-check --no-input install --force-reinstall "
            "--no-deps /dist/my_ext-1.0-py3-none-any.whl");
  EXPECT_EQ(packages->commands[1].constraints, std::vector<std::string>{"torch==2.11.0"});
  EXPECT_EQ(packages->before, (Variables{{"my-ext", "0.9"}}));
  EXPECT_EQ(import_of(packages->modules), "import torch, my_ext._C");
}

// What an installer may choose beside the package that was asked for.
TEST_F(GivenPackage, BringsNoNeighbourThatDoesNotWorkWithIt) {
  auto& distributions = report_.snapshot.distributions.value;
  distributions.front().version = "2.0.1+cu117";
  const auto held = [&] {
    const auto made = change_for(*make_real_host(), report_.snapshot,
                                 InstallPackages{{"mamba-ssm==2.2.2", "einops==0.8.1"}});
    EXPECT_TRUE(made) << english(made.error().message);
    return made ? made->commands.back().constraints : std::vector<std::string>{};
  };
  EXPECT_EQ(held(), (std::vector<std::string>{"torch==2.0.1+cu117", "transformers<5", "transformers<4.52"}));
  distributions.push_back({.name = "transformers", .version = "5.0.0"});  // the user's: it stays
  EXPECT_EQ(held(), std::vector<std::string>{"torch==2.0.1+cu117"});
  distributions.pop_back();
  distributions.front().version = "2.11.0";
  EXPECT_EQ(held(), (std::vector<std::string>{"torch==2.11.0", "transformers<5"}));
}

TEST_F(GivenPackage, IsBuiltByItselfBeforeTheChange) {
  PlanRequest request;
  request.sources = LocalSources{"/my src", false, {"scikit-build-core>=0.10"}, {{"MAX_JOBS", "4"}}};
  const FixPlan plan = plan_with(report_, request);
  ASSERT_EQ(plan.steps.size(), 1u);
  const auto& packages = std::get<ChangePackages>(plan.steps[0].what);
  EXPECT_TRUE(packages.commands.empty());
  ASSERT_TRUE(packages.build);
  ASSERT_EQ(packages.build->commands.size(), 2u);
  const std::string tools = installer::shown(packages.build->commands[0]),
                    build = installer::shown(packages.build->commands[1]);
  EXPECT_NE(tools.find("--target " + packages.work->path() + "/tools"), std::string::npos) << tools;
  for (const char* part : {" MAX_JOBS=4 ", "DIST_EXTRA_CONFIG=", "PYTHONPATH=", " wheel --no-deps ",
                           " --no-build-isolation '/my src'"})
    EXPECT_NE((" " + build).find(part), std::string::npos) << part << " is not in " << build;
}

TEST_F(GivenPackage, IsRefusedWhereOnlyModulesOfOursArePut) {
  PlanRequest request;
  request.wheel = LocalWheel{"/dist/my_ext-1.0-py3-none-any.whl", "my_ext", "1.0", {}};
  request.place = {.base = "/t", .site = "/t", .elsewhere = true};
  const auto plan = plan_fix(*make_real_host(), report_, request);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, Errc::InvalidArgument);
}

TEST(BuiltWheel, IsTheOnlyOneAndIsKept) {
  const auto scratch = TemporaryDirectory::create("wheels");
  ASSERT_TRUE(scratch);
  const std::string folder = scratch->path();
  EXPECT_NE(english(built_wheel(folder).error().message).find("made no wheel"), std::string::npos);
  std::ofstream(folder + "/a-1-py3-none-any.whl") << "bytes";
  std::ofstream(folder + "/a.log") << "x";
  const auto wheel = built_wheel(folder);
  ASSERT_TRUE(wheel);
  const std::string kept = place_of_wheel(*wheel, folder + "/kept").value();
  EXPECT_EQ(kept, folder + "/kept/" + sha256_hex("bytes").substr(0, 16) + "/a-1-py3-none-any.whl");
  EXPECT_TRUE(keep_wheel(*wheel, kept).value());
  EXPECT_FALSE(keep_wheel(*wheel, kept).value());
  // Another build of the same release takes nothing away, neither when it is kept nor when it is forgotten.
  std::ofstream(*wheel) << "other";
  const std::string second = place_of_wheel(*wheel, folder + "/kept").value();
  EXPECT_TRUE(keep_wheel(*wheel, second).value());
  EXPECT_EQ(read_whole_file(second).value(), "other");
  forget_wheel(second);
  EXPECT_FALSE(make_real_host()->exists(path_dirname(second)));
  EXPECT_EQ(read_whole_file(kept).value(), "bytes");
  forget_wheel(kept);
  EXPECT_FALSE(make_real_host()->exists(folder + "/kept"));
  std::ofstream(folder + "/b-1-py3-none-any.whl") << "bytes";
  EXPECT_NE(english(built_wheel(folder).error().message).find("made 2 wheels"), std::string::npos);
}

}  // namespace
}  // namespace scankit::fix

// SPDX-License-Identifier: Apache-2.0
#include "doctor/preflight/checks/build_queries.h"

#include <gtest/gtest.h>

#include <utility>

#include "doctor/checks/recorded_cases.h"
#include "doctor/model/snapshot.h"

namespace scankit::preflight {
namespace {

// Sources for CUDA, with CUDA 13.0 and torch 2.11.0+cu130, without a GPU.
Snapshot machine() {
  return snapshot_from_json(checks::machine_of({{"base", "sources_torch211"}}).dump()).value();
}

std::string answer(const Snapshot& snapshot, const std::vector<std::string>& guards) {
  const auto runs = runs_here(snapshot, {.file = "setup.py", .line = 1, .value = "x", .guards = guards});
  return !runs ? "open" : *runs ? "yes" : "no";
}

using Answers = std::vector<std::pair<std::string, std::string>>;  // condition, answer

void expect(const Snapshot& snapshot, const Answers& answers) {
  for (const auto& [condition, wanted] : answers)
    EXPECT_EQ(answer(snapshot, {condition}), wanted) << condition;
}

TEST(Conditions, OfWordsWithOneMeaning) {
  expect(machine(), {{"True", "yes"},
                     {"False", "no"},
                     {"IS_LINUX", "yes"},
                     {"IS_WINDOWS", "no"},
                     {"IS_MACOS", "no"},
                     {"SKIP_CUDA_BUILD", "no"},
                     {"FORCE_SKIP", "no"},
                     {"HIP_BUILD", "no"},
                     {"USE_ROCM", "no"},
                     {"USE_NINJA", "open"},
                     {"skip SKIP", "open"},
                     {"SKIP()", "open"},
                     {"os.environ[\"SKIP\"]", "open"},
                     {"", "open"}});
}

TEST(Conditions, OfTheToolkitAndTorch) {
  Snapshot here = machine();
  expect(here, {{"CUDA_HOME", "yes"},
                {"CUDA_HOME is not None", "yes"},
                {"CUDA_HOME is None", "no"},
                {"USE_NINJA is None", "open"},
                {"torch.version.cuda", "yes"},
                {"torch.version.cuda is None", "no"},
                {"torch.version.hip", "no"},
                {"torch.cuda.is_available()", "no"}});
  here.build_tools.value.cuda_home = "";
  here.torch.value.cuda = "";
  here.torch.value.hip = "6.2";
  expect(here, {{"CUDA_HOME", "no"},
                {"CUDA_HOME is None", "yes"},
                {"torch.version.cuda", "no"},
                {"torch.version.hip", "yes"},
                {"HIP_BUILD", "yes"},
                {"USE_ROCM", "yes"}});
  here.torch.state = ProbeState::Failed;
  expect(here, {{"torch.version.cuda", "open"}, {"torch.version.hip", "open"}});
}

// A GPU without a driver may be one that the build can use.
TEST(Conditions, OfAGpu) {
  Snapshot here = machine();
  const auto available = [&] { return answer(here, {"torch.cuda.is_available()"}); };
  EXPECT_EQ(available(), "no");
  here.gpus = Probed<std::vector<Gpu>>::of({Gpu{}});
  EXPECT_EQ(available(), "open");
  here.driver = Probed<Driver>::of({});
  EXPECT_EQ(available(), "yes");
  here.gpus = Probed<std::vector<Gpu>>::failed("unreadable");
  EXPECT_EQ(available(), "open");
}

TEST(Conditions, OfTheSystem) {
  expect(machine(), {{"sys.platform == \"linux\"", "yes"},
                     {"sys.platform == 'win32'", "no"},
                     {"sys.platform != 'win32'", "yes"},
                     {"sys.platform != 'linux'", "no"},
                     {"sys.platform >= 'linux'", "open"},
                     {"os.name == 'posix'", "yes"},
                     {"os.name == 'nt'", "no"},
                     {"platform.system() == 'Linux'", "yes"},
                     {"platform.system() == 'Windows'", "no"},
                     {"platform.machine() == 'Linux'", "open"},
                     {"__name__ == '__main__'", "yes"},
                     {"__name__ != '__main__'", "no"},
                     {"__name__ == 'setup'", "no"}});
}

TEST(Conditions, OfTheToolkitsRelease) {
  Snapshot here = machine();
  expect(here, {{"bare_metal_version >= Version(\"11.8\")", "yes"},
                {"bare_metal_version >= Version(\"13.0\")", "yes"},
                {"bare_metal_version >= Version(\"13.1\")", "no"},
                {"nvcc_version <= parse('13.0')", "yes"},
                {"nvcc_version <= parse('12.9')", "no"},
                {"cuda_version > \"12.9\"", "yes"},
                {"cuda_version > \"13.0\"", "no"},
                {"CUDA_VERSION < \"13.1\"", "yes"},
                {"CUDA_VERSION < \"13.0\"", "no"},
                {"nvcc_version == '13.0'", "yes"},
                {"nvcc_version == '13.1'", "no"},
                {"nvcc_version != '13.0'", "no"},
                {"nvcc_version != '13.1'", "yes"},
                {"  nvcc_version   >   '9.9'  ", "yes"},
                {"torch_version >= \"2.0\"", "open"},
                {"nvcc_versions[0] >= \"13\"", "open"},
                {"nvcc() >= \"13\"", "open"},
                {"nvcc_version >= \"new\"", "open"},
                {"nvcc_version >= \"13", "open"},
                {"nvcc_version >= 13", "open"},
                {"nvcc_version >= \"13\" + suffix", "open"},
                {"nvcc_version in \">=13\"", "open"}});
  here.build_tools.value.nvcc_version = "";
  expect(here, {{"nvcc_version >= '11.8'", "open"}});
}

TEST(Conditions, OfSeveralParts) {
  expect(machine(), {{"not True", "no"},
                     {"not False", "yes"},
                     {"not(False)", "yes"},
                     {"not USE_NINJA", "open"},
                     {"nothing", "open"},
                     {"(True)", "yes"},
                     {" ( ( False ) ) ", "no"},
                     {"True and True", "yes"},
                     {"True and False", "no"},
                     {"False and True", "no"},
                     {"True and USE_NINJA", "open"},
                     {"USE_NINJA and True", "open"},
                     {"USE_NINJA and False", "no"},
                     {"False and USE_NINJA", "no"},
                     {"True and True and False", "no"},
                     {"(True) and (True)", "yes"},
                     {"(True) and (False)", "no"},
                     {"(True and True) and not (False and True)", "yes"},
                     {"check(a and b) and False", "no"},
                     {"True or USE_NINJA", "open"},
                     {"False and USE_NINJA or True", "open"},
                     {"False and USE_NINJA else True", "open"},
                     {"True if USE_NINJA else True", "open"},
                     {"((True)", "open"},
                     {"(True", "open"}});
}

TEST(Conditions, AreFollowedDownTwentyLevels) {
  const auto nested = [](std::size_t levels) {
    return std::string(levels, '(') + "True" + std::string(levels, ')');
  };
  EXPECT_EQ(answer(machine(), {nested(20)}), "yes");
  EXPECT_EQ(answer(machine(), {nested(21)}), "open");
}

TEST(Conditions, MustAllHold) {
  EXPECT_EQ(answer(machine(), {}), "yes");
  EXPECT_EQ(answer(machine(), {"True", "True"}), "yes");
  EXPECT_EQ(answer(machine(), {"True", "USE_NINJA"}), "open");
  EXPECT_EQ(answer(machine(), {"USE_NINJA", "True"}), "open");
  EXPECT_EQ(answer(machine(), {"USE_NINJA", "False"}), "no");
  EXPECT_EQ(in_force(machine(), {{.guards = {"False"}}, {.guards = {}}, {.guards = {"USE_NINJA"}}}),
            std::vector<std::size_t>{1});
}

TEST(BuildQueries, WriteAnArchitectureAsTorchDoes) {
  EXPECT_EQ(dotted("90"), "9.0");
  EXPECT_EQ(dotted("120"), "12.0");
  EXPECT_EQ(dotted("9"), "9");
  EXPECT_EQ(dotted(""), "");
  EXPECT_EQ(major_of("13.0"), "13");
  EXPECT_EQ(major_of("13"), "13");
}

// Without its variable such a build leaves the CUDA part out, and needs no nvcc.
TEST(BuildQueries, FollowASwitchThatIsOffByItself) {
  Snapshot here = machine();
  EXPECT_EQ(build_command(here).find("=TRUE"), std::string::npos);
  here.sources.value.opt_in = "MAMBA_KEEP_CUDA_BUILD";
  here.sources.value.opt_in_name = "KEEP_CUDA_BUILD";
  here.sources.value.cuda = {
      {.file = "setup.py", .line = 4, .value = "CUDAExtension", .guards = {"KEEP_CUDA_BUILD"}}};
  expect(here, {{"KEEP_CUDA_BUILD", "no"}});
  EXPECT_EQ(needs_no_cuda(here).english(),
            "setup.py:4 builds for CUDA only where MAMBA_KEEP_CUDA_BUILD=TRUE is set");
  EXPECT_TRUE(build_command(here, "CUDA_HOME=/c").starts_with("MAMBA_KEEP_CUDA_BUILD=TRUE CUDA_HOME=/c "));
  here.sources.value.opted_in = true;
  expect(here, {{"KEEP_CUDA_BUILD", "yes"}});
  EXPECT_EQ(needs_no_cuda(here), Message());
}

// The folder was not named: what is built there is an error only where somebody misses it.
TEST(BuildFinding, IsAWarningWhereWhatItBuildsIsInstalled) {
  Snapshot here = machine();
  SourceTree& tree = here.sources.value;
  const auto severity = [&] { return build_finding(here, Cause::NvccMissing, "").severity(); };
  EXPECT_EQ(severity(), Severity::Error);
  here.distributions.value.push_back(
      {.name = "Scan", .version = "1"});  // the module scan_cuda is not looked for
  EXPECT_EQ(severity(), Severity::Warning);
  tree.asked = true;
  EXPECT_EQ(severity(), Severity::Error);
  tree.asked = false;
  tree.modules = {"selective_scan_cuda"};
  EXPECT_EQ(severity(), Severity::Warning);
  tree.modules = {"selective_scan_cuda", "causal_conv1d_cuda"};
  EXPECT_EQ(severity(), Severity::Error);  // the second one is not
  tree.modules = {"selective_scan_cuda"};
  here.extensions.value.at(0).file_state = "truncated";
  EXPECT_EQ(severity(), Severity::Error);
  here.extensions.value.at(0).selected = false;
  EXPECT_EQ(severity(), Severity::Error);
  tree.build_file = "CMakeLists.txt";
  EXPECT_EQ(severity(), Severity::Warning);
}

}  // namespace
}  // namespace scankit::preflight

// SPDX-License-Identifier: Apache-2.0
// `scankit validate` as users and scripts run it: exit statuses, and what stands on which stream.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "doctor/base/exit_status.h"
#include "doctor/base/process.h"
#include "validate/tests/test_python.h"

namespace scankit::validate {
namespace {

const std::string kModules = SCANKIT_SOURCE_DIR "/validate/tests/modules/";
const std::string kCase = "q011-fp32-b2-d6-l31-n3-g3-D";

ProcessResult scankit_validate(std::vector<std::string> arguments) {
  ProcessRequest request;
  request.argv = {SCANKIT_PROGRAM, "validate"};
  request.argv.insert(request.argv.end(), arguments.begin(), arguments.end());
  request.timeout = std::chrono::minutes(4);
  auto result = run_process(request);
  if (!result) ADD_FAILURE() << english(result.error().message);
  return result ? *result : ProcessResult{};
}

TEST(ValidateCli, ARightModuleEndsWith0AndJsonStandsAlone) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  const auto run = scankit_validate(
      {"--python", python, "--module", kModules + "right.py", "--case", kCase, "--device", "cpu", "--json"});
  EXPECT_EQ(run.exit_code, kExitClean) << run.err;
  const auto json = nlohmann::json::parse(run.out);
  EXPECT_EQ(json["verdict"], "passed");
  EXPECT_EQ(json["cases"].size(), 1u);
  EXPECT_EQ(run.err.find('\x1b'), std::string::npos) << run.err;
}

TEST(ValidateCli, AWrongModuleEndsWith6AndTheRunCanBeRepeated) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  const auto run = scankit_validate({"--python", python, "--module", kModules + "drops_last_odd_step.py",
                                     "--case", kCase, "--device", "cpu", "--seed", "7"});
  EXPECT_EQ(run.exit_code, kExitValidationFailed) << run.err;
  EXPECT_NE(run.out.find("FAILED cpu " + kCase), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("--seed 7 --device cpu --case " + kCase), std::string::npos) << run.out;
}

TEST(ValidateCli, UpstreamsOwnTestsAreACaseOfTheirOwn) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  const std::string file = testing::TempDir() + "scankit_upstream_test.py";
  std::ofstream(file) << "def test_right(): pass\ndef test_wrong(): assert 1 == 2\n";
  const std::vector<std::string> command = {"--python",         python, "--module", kModules + "right.py",
                                            "--case",           kCase,  "--device", "cpu",
                                            "--upstream-tests", file};
  const auto failed = scankit_validate(command);
  EXPECT_EQ(failed.exit_code, kExitValidationFailed) << failed.err;
  EXPECT_NE(failed.out.find("::test_wrong"), std::string::npos) << failed.out;
  EXPECT_NE(failed.out.find("1 failed, 1 passed"), std::string::npos) << failed.out;
  std::ofstream(file)
      << "import pytest\n# @pytest.mark.parametrize('n', [1, 2])\n@pytest.mark.parametrize('n', [1])\n"
         "def test_small(n): assert n < 2\n";
  EXPECT_EQ(scankit_validate(command).exit_code, kExitClean);
  auto more = command;
  more.emplace_back("--commented-parameters");
  const auto found = scankit_validate(more);
  EXPECT_EQ(found.exit_code, kExitValidationFailed) << found.out;
  EXPECT_NE(found.out.find("test_small[2]"), std::string::npos) << found.out;
  std::ofstream(file) << "def test_it(): torch.zeros(1, device='cuda')\n";
  const auto gpu = scankit_validate(command);
  EXPECT_EQ(gpu.exit_code, kExitInconclusive) << gpu.out;
  EXPECT_NE(gpu.out.find("computes on a GPU, and torch finds none"), std::string::npos) << gpu.out;
  std::ofstream(file) << "no test\n";
  EXPECT_EQ(scankit_validate(command).exit_code, kExitInconclusive);
}

TEST(ValidateCli, UpstreamsOwnTestsEndWithTheTimeAndTheRestIsCounted) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  const std::string file = testing::TempDir() + "scankit_many_upstream_test.py";
  std::ofstream(file) << "import pytest, time\n"
                         "# @pytest.mark.parametrize('n', [*range(1000)])\n"
                         "@pytest.mark.parametrize('n', [0])\n"
                         "def test_slow(n): time.sleep(0.1)\n";
  const auto run = scankit_validate({"--python", python, "--module", kModules + "right.py", "--case", kCase,
                                     "--device", "cpu", "--upstream-tests", file, "--commented-parameters",
                                     "--timeout", "15", "--seed", "3"});
  EXPECT_EQ(run.exit_code, kExitClean) << run.out << run.err;
  EXPECT_NE(run.out.find("tests of 1000 were not run: the time limit was reached"), std::string::npos)
      << run.out;
  EXPECT_NE(run.err.find("/1000, "), std::string::npos) << run.err;
}

TEST(ValidateCli, ABlockOfAModelMayBeAskedForByItself) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  const auto run = scankit_validate({"--python", python, "--module", kModules + "right.py", "--case", kCase,
                                     "--case", "model-block", "--device", "cpu", "--json"});
  EXPECT_EQ(run.exit_code, kExitClean) << run.err;
  EXPECT_NE(run.out.find("\"id\": \"model-block\""), std::string::npos) << run.out;
}

TEST(ValidateCli, NothingToValidateEndsWith4) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  const auto run = scankit_validate({"--python", python, "--module", "no_such_package.selective_scan_cuda"});
  EXPECT_EQ(run.exit_code, kExitInconclusive) << run.out;
  EXPECT_NE(run.out.find("no module named no_such_package"), std::string::npos) << run.out;
}

TEST(ValidateCli, AModuleWithoutCasesIsNotCalledWrong) {
  const auto other = scankit_validate({"--module", "my_ext_C"});
  EXPECT_EQ(other.exit_code, kExitUsage) << other.out;
  EXPECT_NE(other.err.find("--module my_ext_C: cannot be validated; validate has cases only for "
                           "selective_scan_cuda, selective_scan_cuda_core, selective_scan_cuda_oflex, "
                           "causal_conv1d_cuda"),
            std::string::npos)
      << other.err;
  const auto typo = scankit_validate({"--module", "selectiv_scan_cuda", "--list-cases"});
  EXPECT_EQ(typo.exit_code, kExitUsage) << typo.out;
  EXPECT_NE(typo.err.find("did you mean selective_scan_cuda?"), std::string::npos) << typo.err;
}

TEST(ValidateCli, WhatTheUserMistypedEndsWith2) {
  const std::vector<std::vector<std::string>> kMistakes = {
      {"--module", "/nonexistent/selective_scan_cuda.abi3.so"},
      {"--module", "/"},
      {"--module", "my_ext_C"},
      {"--case", "q999"},
      {"--device", "tpu"},
      {"--python", "/nonexistent/python"},
      {"--quick", "--full"},
      {"--seed", "many"},
      {"--timeout", "0"},
      {"--no-such-option"},
  };
  for (const auto& mistake : kMistakes) {
    const auto run = scankit_validate(mistake);
    EXPECT_EQ(run.exit_code, kExitUsage) << mistake[0] << " " << run.out;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << run.err;
    EXPECT_TRUE(run.out.empty()) << run.out;
  }
}

TEST(ValidateCli, ABaselineThatIsNoneIsToldBeforeAnythingRuns) {
  const std::string file = testing::TempDir() + "scankit_baseline.json";
  const std::pair<const char*, const char*> kNone[] = {{"speed: fast", "this is not JSON"},
                                                       {"[1]", "not from scankit validate"},
                                                       {R"({"timing": []})", "timed nothing"}};
  for (const auto& [text, why] : kNone) {
    std::ofstream(file) << text;
    const auto run = scankit_validate({"--baseline", file});
    EXPECT_EQ(run.exit_code, kExitUsage) << run.out;
    EXPECT_NE(run.err.find(why), std::string::npos) << run.err;
    EXPECT_TRUE(run.out.empty()) << run.out;
  }
}

TEST(ValidateCli, ABaselineOfAnotherDeviceIsToldAtOnceAndTheCasesRun) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  const std::string file = testing::TempDir() + "scankit_foreign_baseline.json";
  std::ofstream(file) << R"({"cpu": "an abacus", "gpu": null, "timing": [{"device": "cpu"}]})";
  const auto run = scankit_validate({"--python", python, "--module", kModules + "right.py", "--case", kCase,
                                     "--device", "cpu", "--no-timing", "--baseline", file});
  EXPECT_EQ(run.exit_code, kExitInconclusive) << run.out;
  const auto told = run.err.find("the baseline was taken on an abacus, and this is");
  EXPECT_NE(told, std::string::npos) << run.err;
  EXPECT_NE(run.out.find("1 of 1 case passed"), std::string::npos) << run.out;
}

TEST(ValidateCli, ListsTheCasesAsJsonLines) {
  const auto run = scankit_validate({"--list-cases", "--seed", "1"});
  EXPECT_EQ(run.exit_code, kExitClean);
  const auto first = nlohmann::json::parse(run.out.substr(0, run.out.find('\n')));
  EXPECT_EQ(first["tensors"]["u"]["shape"].size(), 3u);
}

}  // namespace
}  // namespace scankit::validate

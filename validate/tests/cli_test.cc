// SPDX-License-Identifier: Apache-2.0
// `scankit validate` as users and scripts run it: exit statuses, and what stands on which stream.
#include <gtest/gtest.h>

#include <algorithm>
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
  if (!result) ADD_FAILURE() << result.error().message;
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
  EXPECT_NE(run.err.find("1 of 1 case"), std::string::npos) << run.err;
}

TEST(ValidateCli, AWrongModuleEndsWith6AndTheRunCanBeRepeated) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  const auto run = scankit_validate({"--python", python, "--module", kModules + "drops_last_odd_step.py",
                                     "--case", kCase, "--device", "cpu", "--seed", "7"});
  EXPECT_EQ(run.exit_code, kExitValidationFailed) << run.err;
  EXPECT_NE(run.out.find("FAILED cpu " + kCase), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("--seed 7 --device cpu --case " + kCase), std::string::npos) << run.out;
}

TEST(ValidateCli, NothingToValidateEndsWith4) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  const auto run = scankit_validate({"--python", python, "--module", "scankit_no_such_module"});
  EXPECT_EQ(run.exit_code, kExitInconclusive) << run.out;
  EXPECT_NE(run.out.find("no module named scankit_no_such_module"), std::string::npos) << run.out;
}

TEST(ValidateCli, WhatTheUserMistypedEndsWith2) {
  const std::vector<std::vector<std::string>> kMistakes = {
      {"--module", "/nonexistent/selective_scan_cuda.abi3.so"},
      {"--module", "/"},
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

TEST(ValidateCli, ListsTheCasesAsJsonLines) {
  const auto run = scankit_validate({"--list-cases", "--seed", "1"});
  EXPECT_EQ(run.exit_code, kExitClean);
  const auto first = nlohmann::json::parse(run.out.substr(0, run.out.find('\n')));
  EXPECT_EQ(first["tensors"]["u"]["shape"].size(), 3u);
}

}  // namespace
}  // namespace scankit::validate

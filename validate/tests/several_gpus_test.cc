// SPDX-License-Identifier: Apache-2.0
// On a machine with two GPUs or more: each of them is validated. Skipped, with the reason, elsewhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "validate/run/run.h"
#include "validate/tests/test_python.h"

namespace scankit::validate {
namespace {

Validation validated(const std::string& python, const std::string& module,
                     const std::vector<std::string>& devices) {
  ::setenv("SCANKIT_INNER_MODULE", SCANKIT_SOURCE_DIR "/validate/tests/modules/right.py", 1);
  ValidateRequest request;
  request.python = python;
  request.module = std::string(SCANKIT_SOURCE_DIR "/validate/tests/") + module;
  request.devices = devices;
  request.timing = false;
  request.model = true;
  request.cases = quick_cases(99);
  request.cases.resize(6);
  auto result = run_validation(request);
  if (!result) ADD_FAILURE() << english(result.error().message);
  return result ? std::move(*result) : Validation{};
}

std::string reasons(const Validation& v, const std::string& device) {
  std::string text;
  for (const CaseResult& c : v.cases)
    if (c.device == device)
      for (const std::string& reason : c.reasons) text += c.id + ": " + reason + "\n";
  return text;
}

std::set<std::string> devices_of(const Validation& v) {
  std::set<std::string> devices;
  for (const CaseResult& c : v.cases) devices.insert(c.device);
  return devices;
}

#define SCANKIT_NEEDS_TWO_GPUS(v) \
  if ((v).gpus.size() < 2)        \
  GTEST_SKIP() << "torch can use " << (v).gpus.size() << " GPUs; this test needs two. " << (v).gpu_problem

TEST(SeveralGpus, EachIsValidated) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  const auto v = validated(python, "modules/right.py", {"cuda"});
  SCANKIT_NEEDS_TWO_GPUS(v);
  EXPECT_EQ(v.blocked, "");
  for (const auto& [device, name] : v.gpus) {
    EXPECT_EQ(reasons(v, device), "");
    EXPECT_EQ(std::ranges::count(v.cases, device, &CaseResult::device), 7) << device;  // and a Mamba block
  }
  EXPECT_TRUE(devices_of(v).contains("cuda:0+graph"));
  EXPECT_FALSE(devices_of(v).contains("cuda:1+graph"));
}

TEST(SeveralGpus, AModuleThatIgnoresWhereItsTensorsAreIsCaught) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  const auto v = validated(python, "gpu/computes_on_the_current_gpu.py", {"cuda"});
  SCANKIT_NEEDS_TWO_GPUS(v);
  EXPECT_EQ(reasons(v, "cuda:0"), "");
  EXPECT_NE(reasons(v, "cuda:1").find("out: relative error"), std::string::npos) << reasons(v, "cuda:1");
  EXPECT_EQ(v.verdict, Verdict::Failed);
}

TEST(SeveralGpus, OneIsValidatedInEveryWayByItsNumber) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  SCANKIT_NEEDS_TWO_GPUS(validated(python, "modules/right.py", {"cuda"}));
  const auto v = validated(python, "gpu/computes_on_the_current_gpu.py", {"cuda:1"});
  const std::set<std::string> ways{"cuda:1", "cuda:1+bands", "cuda:1+graph", "cuda:1+stream"};
  EXPECT_EQ(devices_of(v), ways);
  for (const std::string& way : ways)  // the module computes on the CPU, which a graph does not capture
    EXPECT_EQ(way.ends_with("+graph") ? "" : reasons(v, way), "") << way;
}

}  // namespace
}  // namespace scankit::validate

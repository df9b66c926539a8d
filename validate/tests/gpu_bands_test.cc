// SPDX-License-Identifier: Apache-2.0
// On a GPU: modules that write beside what they return, on the device. Skipped, with the reason, without one.
#include <gtest/gtest.h>

#include <cstdlib>

#include "validate/run/run.h"
#include "validate/tests/test_python.h"

namespace scankit::validate {
namespace {

Validation validated(const std::string& python, const std::string& module) {
  ::setenv("SCANKIT_INNER_MODULE", SCANKIT_SOURCE_DIR "/validate/tests/modules/right.py", 1);
  ValidateRequest request;
  request.python = python;
  request.module = std::string(SCANKIT_SOURCE_DIR "/validate/tests/") + module;
  request.devices = {"cuda:0"};
  request.timing = false;
  request.cases = quick_cases(99);
  request.cases.resize(12);
  auto result = run_validation(request);
  if (!result) ADD_FAILURE() << english(result.error().message);
  return result ? std::move(*result) : Validation{};
}

// The reasons of what failed on `device`, and the notes.
std::string said_on(const std::string& device, const Validation& v) {
  std::string text;
  for (const CaseResult& c : v.cases)
    if (c.device == device)
      for (const std::string& reason : c.reasons) text += c.id + ": " + reason + "\n";
  for (const std::string& note : v.notes) text += "note: " + note + "\n";
  return text;
}

#define SCANKIT_NEEDS_A_GPU(v) \
  if ((v).gpu.empty()) GTEST_SKIP() << "torch finds no GPU. " << (v).gpu_problem

TEST(GpuBands, TheRightModulePasses) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  const auto v = validated(python, "modules/right.py");
  SCANKIT_NEEDS_A_GPU(v);
  EXPECT_EQ(said_on("cuda:0", v), "");
  EXPECT_EQ(said_on("cuda:0+bands", v), "");
  std::size_t seen = 0;
  for (const CaseResult& c : v.cases)
    if (c.device == "cuda:0+bands" && c.state == CaseState::Passed) ++seen;
  EXPECT_GT(seen, 5u);
}

struct Beside {
  const char *module, *says;
};
class WritesBeside : public testing::TestWithParam<Beside> {};

TEST_P(WritesBeside, IsCaughtAndNamed) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  const auto v = validated(python, GetParam().module);
  SCANKIT_NEEDS_A_GPU(v);
  // What lies beside is another tensor where torch's own
  // allocator is in use, whose byte may or may not matter.
  const std::string said = said_on("cuda:0+bands", v);
  EXPECT_NE(said.find(GetParam().says), std::string::npos) << said;
}

INSTANTIATE_TEST_SUITE_P(Each, WritesBeside,
                         testing::Values(Beside{"gpu/writes_behind_its_result.py",
                                                "fwd wrote past the end of out (byte 1 past the end)"},
                                         Beside{"gpu/writes_before_its_result.py",
                                                "bwd wrote before the start of dA (byte 1 before it)"}),
                         [](const auto& each) { return std::string(each.index == 0 ? "behind" : "before"); });

}  // namespace
}  // namespace scankit::validate

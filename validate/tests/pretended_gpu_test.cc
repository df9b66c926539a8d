// SPDX-License-Identifier: Apache-2.0
// The children that a GPU gets, with a torch that pretends to have one (pretended_gpu/) and a library that
// stands in for the driver.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "doctor/base/files.h"
#include "doctor/elf/library_test.h"
#include "validate/run/run.h"
#include "validate/tests/test_python.h"

namespace scankit::validate {
namespace {

constexpr const char* kFolder = SCANKIT_SOURCE_DIR "/validate/tests/";

Validation pretended(const std::string& python, const std::string& module, const char* driver,
                     const std::vector<std::string>& devices = {"cuda:0"},
                     const std::vector<TimedShape>& shapes = {}) {
  const test::Variable path("PYTHONPATH", std::string(kFolder) + "pretended_gpu");
  const test::Variable libraries("LD_LIBRARY_PATH", std::string(SCANKIT_STUBS "/") + driver);
  ValidateRequest request;
  request.python = python;
  request.module = kFolder + module;
  request.devices = devices;
  request.timing = !shapes.empty();
  request.shapes = shapes;
  request.cases = quick_cases(99);
  request.cases.resize(2);
  auto result = run_validation(request);
  if (!result) ADD_FAILURE() << english(result.error().message);
  return result ? std::move(*result) : Validation{};
}

std::string told(const Validation& v, const std::string& device) {
  std::string text;
  for (const CaseResult& c : v.cases)
    if (c.device == device)
      for (const std::string& reason : c.reasons) text += reason + "\n";
  return text;
}
std::string notes(const Validation& v) {
  std::string text;
  for (const std::string& note : v.notes) text += note + "\n";
  return text;
}

TEST(PretendedGpu, SmallCasesRunOnceMoreBetweenBandsInAChildOfTheirOwn) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  const auto v = pretended(python, "pretended_gpu/writes_beside.py", "gpu_memory_stub");
  EXPECT_EQ(v.gpu, "pretended") << v.blocked;
  EXPECT_EQ(told(v, "cuda:0"), "");
  EXPECT_NE(
      told(v, "cuda:0+bands")
          .find(
              "fwd wrote past the end of memory of 10 bytes (byte 1 past the end), which it must not write"),
      std::string::npos)
      << told(v, "cuda:0+bands") << notes(v);
  EXPECT_EQ(v.verdict, Verdict::Failed);
}

// The child with bands imports torch first: had the other one not waited, it would have timed long before.
TEST(PretendedGpu, NothingIsTimedBesideTheChildWithBands) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  const auto folder = TemporaryDirectory::create("scankit-test");
  ASSERT_TRUE(folder) << english(folder.error().message);
  for (const char* mode : {"0", "3"}) {  // and one process at a time: then the bands come last
    const std::string file = path_join(folder->path(), mode);
    const test::Variable list("SCANKIT_TOLD", file), compute_mode("SCANKIT_STUB_MODE", mode);
    const auto v = pretended(python, "pretended_gpu/tells_when.py", "gpu_memory_stub", {"cpu", "cuda:0"},
                             {{"cpu", "fp32", 1, 4, 77, 16, 0.1, false, true}});
    const std::string seen = read_whole_file(file).value_or("");
    ASSERT_NE(seen.find("bands"), std::string::npos) << notes(v) << v.blocked;
    ASSERT_NE(seen.find("timed"), std::string::npos) << notes(v) << v.blocked;
    EXPECT_EQ(told(v, "cpu") + told(v, "cuda:0") + told(v, "cuda:0+bands"), "");
    if (*mode == '0') {
      EXPECT_LT(seen.rfind("bands"), seen.find("timed"));
    } else {
      EXPECT_LT(seen.rfind("timed"), seen.find("bands"));
    }
  }
}

TEST(PretendedGpu, AChildWithBandsThatFoundNoMemoryBesideTheOtherRunsBehindIt) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  const auto folder = TemporaryDirectory::create("scankit-test");
  ASSERT_TRUE(folder) << english(folder.error().message);
  const std::string file = path_join(folder->path(), "once");
  const test::Variable full("SCANKIT_PRETENDED_FULL", file);
  const auto v = pretended(python, "pretended_gpu/writes_beside.py", "gpu_memory_stub");
  EXPECT_TRUE(read_whole_file(file)) << "there was memory";
  EXPECT_EQ(v.blocked, "");
  EXPECT_NE(told(v, "cuda:0+bands").find("fwd wrote past the end"), std::string::npos) << notes(v);
}

TEST(PretendedGpu, ADriverWithoutWhatTheBandsNeedIsANote) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  const auto v = pretended(python, "modules/right.py", "gpu_stub");
  EXPECT_NE(notes(v).find("are not detected: the driver lacks cuCtxGetCurrent"), std::string::npos)
      << notes(v);
  for (const CaseResult& c : v.cases) EXPECT_NE(c.device, "cuda:0+bands") << c.id;
}

// In exclusive mode, or in an error state: the CPU is validated, and what was asked for is not completed.
TEST(PretendedGpu, OneThatCannotBeUsedIsNamedAndTheOtherCasesRun) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  const test::Variable trouble("SCANKIT_PRETENDED_TROUBLE", "uncorrectable ECC error encountered");
  const auto v = pretended(python, "modules/right.py", "gpu_memory_stub", {"cpu", "cuda:0"});
  EXPECT_EQ(v.blocked,
            "the GPU cannot be used: RuntimeError: CUDA error: uncorrectable ECC error encountered");
  EXPECT_EQ(v.verdict, Verdict::Inconclusive);
  ASSERT_EQ(v.cases.size(), 2u);
  for (const CaseResult& c : v.cases)
    EXPECT_TRUE(c.device == "cpu" && c.state == CaseState::Passed) << c.device << c.id;
}

std::size_t count_on(const Validation& v, const std::string& device) {
  return static_cast<std::size_t>(std::ranges::count(v.cases, device, &CaseResult::device));
}

TEST(PretendedGpu, EachOfSeveralIsValidatedAndTheWaysAreOfTheFirst) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  const test::Variable count("SCANKIT_STUB_GPUS", "3");
  const auto v = pretended(python, "modules/right.py", "gpu_memory_stub", {"cpu", "cuda"});
  EXPECT_EQ(v.gpus.size(), 3u) << v.blocked;
  for (const char* device : {"cpu", "cuda:0", "cuda:1", "cuda:2"}) {
    EXPECT_EQ(count_on(v, device), 2u) << device;
    EXPECT_EQ(told(v, device), "");
  }
  EXPECT_GT(count_on(v, "cuda:0+stream"), 0u);
  EXPECT_EQ(count_on(v, "cuda:1+stream") + count_on(v, "cuda:1+bands"), 0u);
  EXPECT_EQ(v.blocked, "");
}

TEST(PretendedGpu, OneOfSeveralThatCannotBeUsedIsNamedAndTheOthersAreValidated) {
  SCANKIT_NEEDS_TEST_PYTHON(python);
  const test::Variable count("SCANKIT_STUB_GPUS", "3"), which("SCANKIT_PRETENDED_TROUBLED", "cuda:1"),
      trouble("SCANKIT_PRETENDED_TROUBLE", "uncorrectable ECC error encountered");
  const auto v = pretended(python, "modules/right.py", "gpu_memory_stub", {"cuda"});
  EXPECT_EQ(v.blocked,
            "cuda:1 cannot be used: RuntimeError: CUDA error: uncorrectable ECC error encountered");
  EXPECT_NE(v.verdict, Verdict::Passed);
  EXPECT_EQ(count_on(v, "cuda:0"), 2u);
  EXPECT_EQ(count_on(v, "cuda:1"), 0u);
  EXPECT_EQ(count_on(v, "cuda:2"), 2u);
}

}  // namespace
}  // namespace scankit::validate

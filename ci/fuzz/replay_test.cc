// SPDX-License-Identifier: Apache-2.0
// What the fuzzers found worth keeping, through every reader again: under the sanitizers too.
#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>

#include "ci/fuzz/targets.h"
#include "doctor/base/files.h"

namespace scankit::fuzz {
namespace {

constexpr const char* kCorpus = SCANKIT_SOURCE_DIR "/ci/fuzz/corpus/";

void replay(const Target& target) {
  std::size_t inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kCorpus + std::string(target.name))) {
    const auto bytes = read_whole_file(entry.path());
    ASSERT_TRUE(bytes) << entry.path();
    const std::clock_t start = std::clock();
    target.read(*bytes);
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    EXPECT_LT(seconds, 10) << entry.path();
    ++inputs;
  }
  EXPECT_GE(inputs, 2u) << target.name << " has no corpus";
}

TEST(FuzzCorpus, GoesThroughEveryReaderAgain) {
  for (const auto targets : {binary_targets(), text_targets()})
    for (const Target& target : targets) replay(target);
}

TEST(FuzzCorpus, HasATargetForEachFolder) {
  for (const auto& entry : std::filesystem::directory_iterator(kCorpus))
    EXPECT_NE(find_target(entry.path().filename().string()), nullptr) << entry.path();
}

}  // namespace
}  // namespace scankit::fuzz

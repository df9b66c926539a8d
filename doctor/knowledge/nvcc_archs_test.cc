// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "doctor/knowledge/gpus.h"

namespace scankit {
namespace {

TEST(NvccArchs, BeginAndEndWithReleases) {
  EXPECT_EQ(nvcc_knows_arch("11.7", "90"), false);
  EXPECT_EQ(nvcc_knows_arch("11.8", "90"), true);
  EXPECT_EQ(nvcc_knows_arch("12.9", "70"), true);
  EXPECT_EQ(nvcc_knows_arch("13.0", "70"), false);
  EXPECT_EQ(nvcc_knows_arch("13.0", "110"), true);
}

TEST(NvccArchs, SaysNothingOfWhatTheTableDoesNotHold) {
  EXPECT_EQ(nvcc_knows_arch("12.4", "999"), std::nullopt);
  EXPECT_EQ(nvcc_knows_arch("", "90"), std::nullopt);
}

}  // namespace
}  // namespace scankit

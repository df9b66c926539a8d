// SPDX-License-Identifier: Apache-2.0
#include "doctor/knowledge/gpus.h"

#include <gtest/gtest.h>

namespace scankit {
namespace {

TEST(KnownGpu, NamesTheCapabilityOfADevice) {
  EXPECT_EQ(known_gpu("2335")->sm, "90");   // H200
  EXPECT_EQ(known_gpu("20b2")->sm, "80");   // A100
  EXPECT_EQ(known_gpu("1db4")->sm, "70");   // V100
  EXPECT_EQ(known_gpu("2b85")->sm, "120");  // GeForce RTX 5090
}

TEST(KnownGpu, KnowsNothingOfOtherIds) {
  EXPECT_FALSE(known_gpu("ffff"));
  EXPECT_FALSE(known_gpu(""));
  EXPECT_FALSE(known_gpu("xyz"));
}

}  // namespace
}  // namespace scankit

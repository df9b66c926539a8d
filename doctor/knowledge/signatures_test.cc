// SPDX-License-Identifier: Apache-2.0
#include "doctor/knowledge/signatures.h"

#include <gtest/gtest.h>

namespace scankit {
namespace {

TEST(Signatures, ChangeWithTheRelease) {
  const std::string fwd = "causal_conv1d_cuda.causal_conv1d_fwd";
  EXPECT_EQ(signature_distribution(fwd), "causal-conv1d");
  EXPECT_EQ(known_signature(fwd, "1.1.3.post1")->arguments, 5u);
  EXPECT_EQ(known_signature(fwd, "1.5.0.post8")->arguments, 7u);
  EXPECT_EQ(known_signature(fwd, "1.5.1")->arguments, 8u);
}

TEST(Signatures, SayNothingOfWhatTheyDoNotKnow) {
  EXPECT_FALSE(known_signature("causal_conv1d_cuda.causal_conv1d_fwd", "2.0"));
  EXPECT_FALSE(known_signature("causal_conv1d_cuda.causal_conv1d_fwd", "main"));
  EXPECT_FALSE(known_signature("causal_conv1d_cuda.other", "1.5.0"));
  EXPECT_EQ(signature_distribution("somebody.else"), "");
}

}  // namespace
}  // namespace scankit

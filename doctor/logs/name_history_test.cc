// SPDX-License-Identifier: Apache-2.0
#include "doctor/logs/name_history.h"

#include <gtest/gtest.h>

namespace scankit::logs {
namespace {

TEST(NameHistory, SaysThatThePackageIsTooOldOrTooNew) {
  const NameHistory fake = history_of("torch.library", "register_fake");
  EXPECT_EQ(fake.why, Lacking::NotYet);
  EXPECT_EQ(fake.package, "torch");
  EXPECT_EQ(fake.first, "2.4");
  EXPECT_EQ(fake.gone, "");
  const NameHistory six = history_of("torch._six", "");
  EXPECT_EQ(six.why, Lacking::NoLonger);
  EXPECT_EQ(six.first, "");
  EXPECT_EQ(six.gone, "2.0");
}

// It is in transformers 4.25 to 4.57 only: what lacks it may be older or newer.
TEST(NameHistory, DoesNotDecideWhereANameCameAndWent) {
  const NameHistory greedy = history_of("transformers.generation", "GreedySearchDecoderOnlyOutput");
  EXPECT_EQ(greedy.why, Lacking::Unknown);
  EXPECT_EQ(
      lacking_because(greedy, "transformers.generation", "GreedySearchDecoderOnlyOutput", {}).english(),
      "transformers.generation has no GreedySearchDecoderOnlyOutput, which came with transformers 4.25, and "
      "which 5.0 removed");
  Judged judged;
  add_history(greedy, judged);
  EXPECT_EQ(judged.more,
            (Captures{{"distribution", "transformers"}, {"first_release", "4.25"}, {"gone_in", "5.0"}}));
}

TEST(NameHistory, KnowsOfTorchWhatNoTableHas) {
  EXPECT_EQ(history_of("torch", "bfloat16").why, Lacking::NotYet);
  EXPECT_EQ(history_of("torch", "symeig").why, Lacking::NoLonger);
  EXPECT_EQ(history_of("torch.library", "never_heard_of").why, Lacking::NotYet);
  EXPECT_EQ(history_of("torch", "never_heard_of").why, Lacking::Unknown);
  EXPECT_EQ(history_of("other", "bfloat16").why, Lacking::Unknown);
  EXPECT_EQ(history_of("torch", "bfloat16").first, "");
}

TEST(NameHistory, BecomesASentenceAndFacts) {
  const Message otherwise = message("certain");
  const NameHistory joblib = history_of("sklearn.externals", "joblib");
  EXPECT_EQ(lacking_because(joblib, "sklearn.externals", "joblib", otherwise).english(),
            "sklearn.externals has no joblib, which sklearn 0.23 removed");
  Judged judged;
  add_history(joblib, judged);
  EXPECT_EQ(judged.more, (Captures{{"distribution", "scikit-learn"}, {"gone_in", "0.23"}}));
  EXPECT_EQ(lacking_because(history_of("torchvision.transforms.functional_tensor", ""),
                            "torchvision.transforms.functional_tensor", "", otherwise)
                .english(),
            "torchvision.transforms.functional_tensor is missing: it came with torchvision 0.5, and 0.17 "
            "removed it");
  const NameHistory attention = history_of("torch.nn.attention", "");
  EXPECT_EQ(lacking_because(attention, "torch.nn.attention", "", otherwise).english(),
            "torch.nn.attention is missing: it came with torch 2.3");
  EXPECT_EQ(lacking_because(history_of("a", "b"), "a", "b", otherwise).english(), "certain");
  Judged nothing;
  add_history(history_of("a", "b"), nothing);
  EXPECT_TRUE(nothing.more.empty());
}

}  // namespace
}  // namespace scankit::logs

// SPDX-License-Identifier: Apache-2.0
#include "doctor/logs/name_history.h"

#include <gtest/gtest.h>

namespace scankit::logs {
namespace {

TEST(NameHistory, SaysThatThePackageIsTooOldOrTooNew) {
  const NameHistory fake = history_of("torch.library", "register_fake");
  EXPECT_EQ(fake.why, Lacking::NotYet);
  EXPECT_EQ(fake.package, "torch");
  EXPECT_EQ(fake.release, "2.4");
  const NameHistory six = history_of("torch._six", "");
  EXPECT_EQ(six.why, Lacking::NoLonger);
  EXPECT_EQ(six.release, "2.0");
}

// It is in transformers 4.25 to 4.57 only: what lacks it may be older or newer.
TEST(NameHistory, SaysNothingOfANameThatCameAndWent) {
  const NameHistory greedy = history_of("transformers.generation", "GreedySearchDecoderOnlyOutput");
  EXPECT_EQ(greedy.why, Lacking::Unknown);
  EXPECT_EQ(greedy.release, "");
}

TEST(NameHistory, KnowsOfTorchWhatNoTableHas) {
  EXPECT_EQ(history_of("torch", "bfloat16").why, Lacking::NotYet);
  EXPECT_EQ(history_of("torch", "symeig").why, Lacking::NoLonger);
  EXPECT_EQ(history_of("torch.library", "never_heard_of").why, Lacking::NotYet);
  EXPECT_EQ(history_of("torch", "never_heard_of").why, Lacking::Unknown);
  EXPECT_EQ(history_of("other", "bfloat16").why, Lacking::Unknown);
  EXPECT_EQ(history_of("torch", "bfloat16").release, "");
}

TEST(NameHistory, BecomesASentenceAndFacts) {
  const Message otherwise = message("certain");
  const NameHistory joblib = history_of("sklearn.externals", "joblib");
  EXPECT_EQ(lacking_because(joblib, "sklearn.externals", "joblib", otherwise).english(),
            "sklearn.externals has no joblib, which sklearn 0.23 removed");
  Judged judged;
  add_history(joblib, judged);
  EXPECT_EQ(judged.more, (Captures{{"distribution", "scikit-learn"}, {"gone_in", "0.23"}}));
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

// SPDX-License-Identifier: Apache-2.0
#include "builder/module/target.h"

#include <gtest/gtest.h>

namespace scankit::module {
namespace {

const std::vector<unsigned> kNvrtc13 = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};

Probed<std::vector<Gpu>> gpus(std::initializer_list<const char*> sms) {
  std::vector<Gpu> list;
  for (const char* sm : sms) list.push_back({.name = std::string("GPU of ") + sm, .sm = sm});
  return Probed<std::vector<Gpu>>::of(list);
}

std::string names(const Result<TargetChoice>& choice) {
  if (!choice) return "error: " + english(choice.error().message);
  std::string text;
  for (const Target& target : choice->targets) text += target.name() + " ";
  return text;
}

TEST(Targets, AreReadInEverySpelling) {
  auto request = parse_targets("sm_90,8.0,compute_75,100a");
  ASSERT_TRUE(request);
  ASSERT_EQ(request->list.size(), 4u);
  EXPECT_EQ(request->list[1].name(), "sm_80");
  EXPECT_EQ(request->list[2].name(), "compute_75");
  EXPECT_EQ(request->list[3].name(), "sm_100a");
}

TEST(Targets, RefuseWhatIsNoArchitecture) {
  for (const char* bad : {"", "sm_", "sm_9", "hopper", "sm_90,", "sm_90;rm", "sm_99999999999999999999"})
    EXPECT_FALSE(parse_targets(bad)) << bad;
}

TEST(Targets, WithoutGpuArePtxAndSaySo) {
  const auto choice = choose_targets({}, Probed<std::vector<Gpu>>::absent("no NVIDIA device"), kNvrtc13);
  EXPECT_EQ(names(choice), "compute_75 ");
  EXPECT_EQ(choice->notes.size(), 1u);
}

TEST(Targets, OfNoneNeedNoCompilerAndSayWhy) {
  const auto asked = parse_targets("none");
  ASSERT_TRUE(asked);
  EXPECT_EQ(asked->kind, TargetRequest::Kind::None);
  const auto choice = choose_targets(*asked, gpus({"90"}), {});
  EXPECT_EQ(names(choice), "");
  EXPECT_TRUE(choice->notes.empty());
  TargetRequest decided = *asked;
  decided.none_since = "torch has no CUDA";
  EXPECT_EQ(choose_targets(decided, gpus({"90"}), {})->notes, std::vector<std::string>{"torch has no CUDA"});
}

TEST(Targets, OfAnOldCompilerStartAt75ForPtx) {
  EXPECT_EQ(names(choose_targets({}, Probed<std::vector<Gpu>>::absent(""), {50, 70, 75, 90})), "compute_75 ");
  EXPECT_EQ(names(choose_targets({}, Probed<std::vector<Gpu>>::absent(""), {50, 70})), "compute_70 ");
}

TEST(Targets, FollowTheGpusOnce) {
  EXPECT_EQ(names(choose_targets({}, gpus({"90", "80", "90"}), kNvrtc13)), "sm_80 sm_90 ");
}

TEST(Targets, FallBackInsideTheMajorOnly) {
  EXPECT_EQ(names(choose_targets({}, gpus({"89"}), {80, 86, 90})), "sm_86 ");
  EXPECT_EQ(names(choose_targets({}, gpus({"130"}), kNvrtc13)), "compute_75 ");
  EXPECT_EQ(names(choose_targets({}, gpus({"89"}), {80, 87, 90})), "sm_80 ");  // 87 is a Tegra chip
  EXPECT_EQ(names(choose_targets({}, gpus({"87"}), {80, 86, 87, 90})), "sm_87 ");
  EXPECT_EQ(names(choose_targets({}, gpus({"87"}), {75, 80, 86, 90})),
            "compute_75 ");  // a cubin of a desktop chip does not run on 87
}

TEST(Targets, NameTheGpuThatTheCompilerLeftBehind) {
  const auto choice = choose_targets({}, gpus({"70"}), kNvrtc13);
  ASSERT_FALSE(choice);
  EXPECT_NE(english(choice.error().message).find("sm_70 (GPU of 70)"), std::string::npos);
}

TEST(Targets, NativeNeedsAGpu) {
  EXPECT_FALSE(
      choose_targets({TargetRequest::Kind::Native, {}}, Probed<std::vector<Gpu>>::absent(""), kNvrtc13));
}

TEST(Targets, AllHoldsEveryCubinAndOnePtx) {
  EXPECT_EQ(names(choose_targets({TargetRequest::Kind::All, {}}, gpus({}), {80, 90})),
            "sm_80 sm_90 compute_80 ");
}

}  // namespace
}  // namespace scankit::module

// SPDX-License-Identifier: Apache-2.0
#include "validate/cases/cases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "validate/cases/data.h"

namespace scankit::validate {
namespace {

TEST(Cases, AreTheSameForTheSameSeedAndOtherDataForAnother) {
  const auto first = quick_cases(1), again = quick_cases(1), other = quick_cases(2);
  ASSERT_EQ(first.size(), other.size());
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(case_to_json(first[i]), case_to_json(again[i]));
    EXPECT_EQ(first[i].id, other[i].id);
    EXPECT_NE(make_data(*first[i].find("u")), make_data(*other[i].find("u"))) << first[i].id;
  }
}

// A stream that changed would silently change every recorded
// run: pinned by values of an independent splitmix64.
TEST(Cases, DataFollowsThePinnedStream) {
  TensorSpec spec{"u", Dtype::F32, {3}, {1}, 0, 3, {FillKind::Uniform, 0, 1}, 1234567};
  const auto data = make_data(spec);
  // splitmix64 seeded 1234567 begins 6457827717110365317; element 0 is that value's upper 53 bits over 2^53.
  EXPECT_EQ(data[0], rounded(Dtype::F32, static_cast<double>(6457827717110365317u >> 11) * 0x1p-53));
}

TEST(Cases, EveryTensorStaysInsideItsStorage) {
  std::vector<Case> cases = full_cases(7);
  for (Case& c : stateful_cases(7, 50)) cases.push_back(std::move(c));
  for (const Case& c : cases) {
    for (const TensorSpec& t : c.tensors) {
      std::int64_t last = t.offset;
      for (std::size_t i = 0; i < t.shape.size(); ++i) last += (t.shape[i] - 1) * t.strides[i];
      EXPECT_LT(last, t.storage) << c.id << " " << t.name;
      EXPECT_EQ(t.shape.size(), t.strides.size());
    }
  }
}

TEST(Cases, IdentifiersAreUnique) {
  std::set<std::string> seen;
  for (const auto& list : {full_cases(3), stateful_cases(3, 50)})
    for (const Case& c : list) EXPECT_TRUE(seen.insert(c.id).second) << c.id;
}

TEST(Cases, StatefulOnesHaveEveryPartInEveryKind) {
  std::set<std::string> parts;
  for (const Case& c : stateful_cases(3, 100)) {
    ASSERT_TRUE(c.stateful);
    if (c.step) {
      EXPECT_EQ(c.length, 1) << c.id;
      EXPECT_FALSE(c.complex()) << c.id;
      parts.insert("a step with a state of " + std::string(dtype_name(c.find("initial_state")->dtype)));
      continue;
    }
    const std::string kind = c.complex() ? " of a complex A" : c.constant("B") ? " of a constant B" : "";
    for (const char* name : {"initial_state", "dlast_state"}) {
      const TensorSpec* state = c.find(name);
      if (state == nullptr) continue;
      parts.insert(name + kind);
      EXPECT_EQ(state->shape[0], c.cu_seqlens.empty() ? c.batch : static_cast<int>(c.cu_seqlens.size()) - 1);
    }
    if (c.cu_seqlens.empty()) continue;
    parts.insert("packed" + kind);
    EXPECT_EQ(c.batch, 1) << c.id;
    EXPECT_EQ(c.cu_seqlens.front(), 0) << c.id;
    EXPECT_EQ(c.cu_seqlens.back(), c.length) << c.id;
    EXPECT_TRUE(std::is_sorted(c.cu_seqlens.begin(), c.cu_seqlens.end())) << c.id;
    if (std::adjacent_find(c.cu_seqlens.begin(), c.cu_seqlens.end()) != c.cu_seqlens.end())
      parts.insert("an empty sequence");
  }
  EXPECT_EQ(parts.size(), 13u);
}

TEST(Cases, GroupsDivideTheChannels) {
  for (const Case& c : full_cases(11)) {
    EXPECT_EQ(c.dim % c.groups, 0) << c.id;
    EXPECT_LE(c.states, 256) << c.id;
  }
}

TEST(Cases, XIsWithheldOnlyWhereTheContractAllowsIt) {
  for (const Case& c : full_cases(5)) EXPECT_TRUE(c.give_x || c.length <= 2048) << c.id;
}

// The quick list is what `fix` and most users run: it may not quietly lose a part of the contract.
TEST(Cases, QuickListCoversTheContract) {
  using Has = std::function<bool(const Case&)>;
  const auto tensor = [](const char* name) {
    return [name](const Case& c) { return c.find(name) != nullptr; };
  };
  const std::pair<const char*, Has> kBothWays[] = {
      {"D", tensor("D")},
      {"z", tensor("z")},
      {"delta_bias", tensor("delta_bias")},
      {"dz", tensor("dz")},
      {"softplus", [](const Case& c) { return c.softplus; }},
      {"groups", [](const Case& c) { return c.groups > 1; }},
      {"odd length", [](const Case& c) { return c.length % 2 == 1; }},
      {"longer than 2048", [](const Case& c) { return c.length > 2048; }},
      {"states beyond 16", [](const Case& c) { return c.states > 16; }},
      {"complex", [](const Case& c) { return c.complex(); }},
      {"constant B", [](const Case& c) { return c.constant("B"); }},
      {"constant C", [](const Case& c) { return c.constant("C"); }},
      {"complex and groups", [](const Case& c) { return c.complex() && c.groups > 1; }},
      {"complex and constant B", [](const Case& c) { return c.complex() && c.constant("B"); }},
  };
  for (const Dtype dtype : {Dtype::F32, Dtype::F16, Dtype::BF16}) {
    for (const auto& [name, has] : kBothWays) {
      if (dtype == Dtype::F16 && std::string(name) == "longer than 2048") continue;
      int with = 0, without = 0;
      for (const Case& c : quick_cases(0))
        if (c.dtype == dtype) ++(has(c) ? with : without);
      EXPECT_GT(with, 0) << dtype_name(dtype) << " " << name;
      EXPECT_GT(without, 0) << dtype_name(dtype) << " " << name;
    }
  }
}

TEST(Cases, ListsVisitEveryKindOfProjection) {
  std::set<int> quick, full;
  const auto kind = [](const Case& c) { return c.complex() * 4 + c.constant("B") * 2 + c.constant("C"); };
  for (const Case& c : quick_cases(1)) quick.insert(kind(c));
  for (const Case& c : full_cases(1)) full.insert(kind(c));
  EXPECT_EQ(quick.size(), 8u);
  EXPECT_EQ(full.size(), 8u);
}

TEST(Cases, ComplexTensorsHaveTwoPartsAnElement) {
  for (const Case& c : quick_cases(4)) {
    if (!c.complex()) continue;
    const std::vector<double> A = make_data(*c.find("A"));
    ASSERT_EQ(A.size(), 2 * static_cast<std::size_t>(c.find("A")->count())) << c.id;
    EXPECT_NE(A[0], A[1]) << c.id;
    EXPECT_EQ(c.find("B")->shape.back(), c.constant("B") ? c.states : 2 * c.length) << c.id;
  }
}

TEST(Cases, FullListVisitsEveryStateCountItNames) {
  std::set<int> states;
  for (const Case& c : full_cases(1)) states.insert(c.states);
  EXPECT_GE(states.size(), 15u);
}

TEST(Number, RoundsToNearestEven) {
  EXPECT_EQ(rounded(Dtype::BF16, 1 + 0x1p-8), 1.0);
  EXPECT_EQ(rounded(Dtype::BF16, 1 + 0x3p-8), 1 + 0x1p-6);
  EXPECT_EQ(rounded(Dtype::F16, 1 + 0x1p-11), 1.0);
  EXPECT_EQ(rounded(Dtype::F16, 65519.0), 65504.0);
  EXPECT_TRUE(std::isinf(rounded(Dtype::F16, 65520.0)));
  EXPECT_EQ(rounded(Dtype::F16, 0x1p-25), 0.0);
  EXPECT_EQ(rounded(Dtype::F16, 0x3p-25), 0x1p-23);
  EXPECT_EQ(rounded(Dtype::F32, 0.1), static_cast<double>(0.1f));
}

}  // namespace
}  // namespace scankit::validate

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "kernels/selective_scan/cuda/choice.h"

namespace scankit::selective_scan {
namespace {

constexpr device::DeviceFacts kH200 = {90, 132, 232448, 233472};
constexpr device::DeviceFacts kPcie = {90, 114, 232448, 233472};
constexpr device::DeviceFacts kAmpere = {80, 132, 167936, 167936};

Common problem(int batch, int dim, int length, int states, DType dtype = DType::BF16) {
  Common c = {};
  c.batch = batch, c.dim = dim, c.length = length, c.states = states, c.groups = 1, c.dtype = dtype;
  return c;
}
int variant_of(int lanes, int per_lane) {
  for (int v = 0; v < kForwardVariantCount; ++v)
    if (kForwardVariants[v].lanes == lanes && kForwardVariants[v].per_lane == per_lane) return v;
  return -1;
}
Measurement measured(const Common& c, const Choice& choice) {
  return {90, 132, c.dtype, c.states, c.length, Index{c.batch} * c.dim, choice};
}
const Measurement* nearest(const std::vector<Measurement>& rows, const Common& c,
                           const device::DeviceFacts& facts = kH200) {
  return find_measurement({rows.data(), static_cast<int>(rows.size())}, c, facts).row;
}
Choice chosen(const std::vector<Measurement>& rows, const Common& c,
              const device::DeviceFacts& facts = kH200) {
  Choice choice;
  EXPECT_TRUE(choose_forward_by({rows.data(), static_cast<int>(rows.size())}, c, facts, &choice));
  return choice;
}
bool same(const Choice& a, const Choice& b) { return std::memcmp(&a, &b, sizeof a) == 0; }

TEST(Dispatch, WithoutRowsTheChoiceIsPredicted) {
  for (const int dim : {64, 768, 2048, 5120}) {
    for (const int states : {1, 16, 100}) {
      const Common c = problem(2, dim, 2048, states);
      Choice predicted, backward, backward_predicted;
      ASSERT_TRUE(choose_forward(c, kPcie, &predicted));
      EXPECT_TRUE(same(chosen({}, c, kPcie), predicted));
      ASSERT_TRUE(choose_backward(c, kPcie, &backward));
      ASSERT_TRUE(choose_backward_by({nullptr, 0}, c, kPcie, &backward_predicted));
      EXPECT_TRUE(same(backward, backward_predicted));
    }
  }
}

TEST(Dispatch, ARowOfTheProblemIsObeyedWhateverIsPredicted) {
  const Common c = problem(8, 2048, 2048, 16);
  const Choice odd = {variant_of(16, 1), 4, 7, 3};
  EXPECT_TRUE(same(chosen({measured(c, odd)}, c), odd));
  EXPECT_FALSE(same(chosen({measured(c, odd)}, c, kPcie), odd));
  EXPECT_FALSE(same(chosen({measured(c, odd)}, c, kAmpere), odd));
  Common grouped = c;  // other blocks, so not this very problem: and four times as slow, as predicted
  grouped.groups = 2;
  EXPECT_FALSE(same(chosen({measured(c, odd)}, grouped), odd));
}

TEST(Dispatch, ARowThatCannotRunTheProblemIsPassedOver) {
  const Common c = problem(8, 2048, 2048, 16);
  const Choice predicted = chosen({}, c);
  for (const Choice& bad : {Choice{variant_of(2, 2), 4, 1, 1}, Choice{variant_of(4, 4), 8, 1, 1},
                            Choice{kForwardVariantCount, 2, 1, 1}, Choice{variant_of(8, 2), 1, 1, 1}})
    EXPECT_TRUE(same(chosen({measured(c, bad)}, c), predicted)) << bad.variant;
  const device::DeviceFacts tiny = {90, 132, 1024, 2048};
  Choice choice;
  EXPECT_FALSE(choose_forward_by({nullptr, 0}, c, tiny, &choice));
}

TEST(Dispatch, TheNearestRowIsByTheLogarithms) {
  const std::vector<Measurement> rows = {measured(problem(8, 2048, 2048, 16), {2, 2, 1, 1}),
                                         measured(problem(8, 2048, 1024, 16), {2, 2, 1, 1}),
                                         measured(problem(4, 2048, 2048, 16), {2, 2, 1, 1})};
  EXPECT_EQ(nearest(rows, problem(8, 2048, 2000, 16)), &rows[0]);
  EXPECT_EQ(nearest(rows, problem(8, 2048, 1400, 16)), &rows[1]);
  EXPECT_EQ(nearest(rows, problem(1, 9000, 2048, 16)), &rows[2]);
  EXPECT_EQ(nearest(rows, problem(1, 14000, 2048, 16)), &rows[0]);
  EXPECT_EQ(nearest(rows, problem(64, 2048, 2048, 16)), nullptr);  // eight times the channels
  EXPECT_EQ(nearest(rows, problem(8, 2048, 16384, 16)), nullptr);
  EXPECT_EQ(nearest(rows, problem(8, 2048, 300, 16)), nullptr);
  EXPECT_EQ(nearest(rows, problem(8, 2048, 0, 16)), nullptr);
  EXPECT_EQ(nearest(rows, problem(0, 2048, 2048, 16)), nullptr);
}

TEST(Dispatch, StatesGoBySliceAndTypesBySize) {
  const std::vector<Measurement> rows = {
      measured(problem(8, 2048, 2048, 16), {2, 2, 1, 1}),
      measured(problem(8, 2048, 2048, 64), {5, 2, 1, 1}),
      measured(problem(8, 2048, 2048, 16, DType::F32), {2, 2, 1, 1}),
      measured(problem(8, 2048, 2048, 1), {0, 2, 1, 1}),
      measured(problem(8, 2048, 2048, 4), {0, 2, 1, 1}),
  };
  EXPECT_EQ(nearest(rows, problem(8, 2048, 2048, 9)), &rows[0]);
  EXPECT_EQ(nearest(rows, problem(8, 2048, 2048, 8)), nullptr);
  EXPECT_EQ(nearest(rows, problem(8, 2048, 2000, 1)), &rows[3]);
  EXPECT_EQ(nearest(rows, problem(8, 2048, 2048, 2)), &rows[4]);
  EXPECT_EQ(nearest(rows, problem(8, 2048, 2048, 17)), nullptr);
  EXPECT_EQ(nearest(rows, problem(8, 2048, 2048, 100)), &rows[1]);
  EXPECT_EQ(nearest(rows, problem(8, 2048, 2048, 256)), nullptr);
  EXPECT_EQ(nearest(rows, problem(8, 2048, 2048, 16, DType::F16)), &rows[0]);
  EXPECT_EQ(nearest(rows, problem(8, 2048, 2048, 16, DType::F32)), &rows[2]);
  EXPECT_EQ(nearest(rows, problem(8, 2048, 2048, 64, DType::F32)), nullptr);
}

TEST(Dispatch, RowsOfOneLogarithmAreToldApart) {
  const Common even = problem(8, 2048, 4096, 16), odd = problem(8, 2048, 4097, 16);
  const std::vector<Measurement> rows = {measured(odd, {variant_of(4, 4), 2, 1, 1}),
                                         measured(even, {variant_of(2, 8), 2, 1, 1})};
  EXPECT_EQ(nearest(rows, odd), &rows[0]);
  EXPECT_EQ(nearest(rows, even), &rows[1]);
  EXPECT_EQ(nearest(rows, problem(8, 2048, 4099, 16)), &rows[0]) << "rows at odd places too";
  EXPECT_EQ(nearest(rows, problem(8, 2048, 4104, 16)), &rows[1]);
}

TEST(Dispatch, AnothersRowIsNoExactOne) {
  const Common c = problem(8, 2048, 2048, 16);
  const Measurement row = measured(c, {variant_of(4, 4), 2, 1, 1});
  EXPECT_TRUE(find_measurement({&row, 1}, c, kH200).exact);
  EXPECT_TRUE(find_measurement({&row, 1}, problem(4, 4096, 2048, 16), kH200).exact);
  for (const Common& other : {problem(8, 2048, 2052, 16), problem(8, 2050, 2048, 16),
                              problem(8, 2048, 2048, 15), problem(8, 2048, 2048, 16, DType::F16)}) {
    const Found found = find_measurement({&row, 1}, other, kH200);
    EXPECT_EQ(found.row, &row);
    EXPECT_FALSE(found.exact);
  }
}

// Of 9 to 16 states, in 16-bit types, other kernels are fast at odd places.
TEST(Dispatch, RowsAtOddPlacesHaveNoNeighboursAtOthers) {
  const Common even = problem(8, 2048, 2048, 16);
  const Measurement row = measured(even, {variant_of(4, 4), 2, 1, 1});
  EXPECT_EQ(find_measurement({&row, 1}, problem(8, 2048, 2049, 16), kH200).row, nullptr);
  EXPECT_EQ(find_measurement({&row, 1}, problem(8, 2048, 2050, 16), kH200).row, nullptr);
  for (const Common& c : {problem(8, 2048, 2048, 8), problem(8, 2048, 2048, 16, DType::F32)}) {
    const Measurement own = measured(c, {variant_of(4, 4), 2, 1, 1});
    EXPECT_EQ(find_measurement({&own, 1}, problem(8, 2048, 2049, c.states, c.dtype), kH200).row, &own);
  }
}

// fp32's rows of whole quads have a backward of their own: what was measured of them is not for rows at other places,
// and they prefer it to what was measured there.
TEST(Dispatch, AKernelThatTheRowsDoNotAllowIsPassedOver) {
  const auto at = [](int length) { return problem(8, 2048, length, 16, DType::F32); };
  int loop = 0, tiled = 0;
  while (!kBackwardVariants[loop].halves) ++loop;
  while (kBackwardVariants[tiled].halves || kBackwardVariants[tiled].lanes != 4) ++tiled;
  const Measurement rows[] = {measured(at(2048), {loop, 8, 1, 1}), measured(at(2047), {tiled, 4, 1, 1})};
  const auto found = [&](int length, bool places) {
    return find_measurement({rows, 2}, at(length), kH200, kBackwardVariants, places).row;
  };
  EXPECT_EQ(found(2047, false), &rows[1]);
  EXPECT_EQ(found(2044, true), &rows[0]);
  EXPECT_EQ(found(2045, false), &rows[1]);
  EXPECT_EQ(find_measurement({rows, 1}, at(2047), kH200, kBackwardVariants, false).row, nullptr);
}

// A neighbour's seven segments are near the best count, the whole
// length in one is not.
TEST(Dispatch, ANeighboursChoiceIsTakenWhereItIsNotPredictedToBeSlow) {
  const Common measured_at = problem(1, 2048, 16384, 16), c = problem(1, 2100, 16384, 16);
  Choice near = chosen({}, c);
  ASSERT_GT(near.segments, 2);
  near.segments -= 1;
  EXPECT_TRUE(same(chosen({measured(measured_at, near)}, c), near));
  const Choice far = {variant_of(4, 4), 4, 1, 1};
  EXPECT_FALSE(same(chosen({measured(measured_at, far)}, c), far));
}

TEST(Dispatch, WhatIsCompiledInCanRunWhatItWasMeasuredOn) {
  const auto check = [](const DispatchTable& table, const Variant* variants, int shipped) {
    for (int i = 0; i < table.count; ++i) {
      const Measurement& row = table.rows[i];
      SCOPED_TRACE(i);
      ASSERT_LT(row.choice.variant, shipped);
      const Common c = problem(1, static_cast<int>(row.channels), row.length, row.states, row.dtype);
      EXPECT_TRUE(can_run(variants[row.choice.variant], row.choice.warps, c, kH200));
      EXPECT_GE(row.choice.segments, 1);
      EXPECT_GE(row.choice.pieces, 1);
      const Found found = find_measurement(table, c, {row.capability, row.multiprocessors, 0, 0});
      EXPECT_EQ(found.row, &row) << "two rows of one problem";
    }
  };
  check(kForwardMeasured, kForwardVariants, kForwardShipped);
  check(kBackwardMeasured, kBackwardVariants, kBackwardShipped);
}

}  // namespace
}  // namespace scankit::selective_scan

// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <set>

#include "doctor/base/files.h"
#include "kernels/selective_scan/tune/cells.h"

namespace scankit::selective_scan {
namespace {

constexpr device::DeviceFacts kH200 = {90, 132, 232448, 233472};
constexpr Cell kMain = {false, DType::BF16, 8, 2048, 2048, 16, 0};

// Times by a rule, with a little noise; some choices are wrong.
class FakeBench : public Bench {
 public:
  std::string open(const Cell&) override { return ""; }
  std::string judge(const Choice& choice) override {
    ++judged;
    EXPECT_EQ(timed, 0) << "timed before all were judged";
    return wrong.count(name_of(false, choice)) > 0 ? "out is off" : "";
  }
  double milliseconds(const Choice& choice) override {
    ++timed;
    const std::string name = name_of(false, choice);
    EXPECT_EQ(wrong.count(name), 0u) << "a wrong choice was timed";
    const auto known = ms.find(name);
    noise = noise * 1664525u + 1013904223u;
    const double mine = known == ms.end() ? 1.0 : known->second;
    return mine * (1 + 0.004 * (noise >> 8) / 16777216.0);
  }
  std::map<std::string, double> ms;
  std::set<std::string> wrong;
  int judged = 0, timed = 0;
  unsigned noise = 1;
};
std::string name_at(const Outcome& outcome, int i) {
  return i < 0 ? "none" : name_of(false, outcome.entries[static_cast<std::size_t>(i)].choice);
}

TEST(TuneCells, TheSixShapesComeFirstAndNoneTwice) {
  const std::vector<Cell> cells = default_cells();
  std::set<std::string> names;
  int tier = 0;
  for (const Cell& cell : cells) {
    EXPECT_TRUE(names.insert(name_of(cell)).second) << name_of(cell);
    EXPECT_GE(cell.tier, tier);
    tier = cell.tier;
  }
  ASSERT_GT(cells.size(), 12u);
  EXPECT_EQ(name_of(cells[0]), "forward bf16 B8 D2048 L2048 N16");
  EXPECT_EQ(name_of(cells[11]), "backward f32 B8 D2048 L2048 N16");
  EXPECT_EQ(cells[11].tier, 0);
  EXPECT_EQ(cells[12].tier, 1);
}

TEST(TuneCells, EveryChoiceCanRunAndIsThereOnce) {
  for (const Cell& cell : default_cells()) {
    SCOPED_TRACE(name_of(cell));
    const std::vector<Choice> choices = choices_of(cell, kH200);
    std::set<std::string> names;
    for (const Choice& c : choices) {
      EXPECT_TRUE(names.insert(name_of(cell.backward, c)).second);
      EXPECT_TRUE(can_run(variant_of(cell.backward, c.variant), c.warps, common_of(cell), kH200));
    }
    EXPECT_GE(choices.size(), 2u);
    const int variants = cell.backward ? kBackwardVariantCount : kForwardVariantCount;
    EXPECT_LE(choices.size(), 30u * static_cast<unsigned>(variants));
    const Choice predicted = predicted_choice(cell, kH200);
    EXPECT_LT(predicted.variant, shipped_variants(cell.backward));
  }
}

TEST(TuneContest, TheFastestRightOneWins) {
  FakeBench bench;
  const Choice predicted = predicted_choice(kMain, kH200);
  bench.ms = {{"4x4/4 s1 p2", 0.5}, {"8x2/4 s1 p2", 0.4}, {"16x1/4 s1 p2", 0.45}};
  bench.wrong = {"8x2/4 s1 p2"};
  const Outcome outcome = hold_contest(bench, kMain, choices_of(kMain, kH200), predicted);
  EXPECT_EQ(name_at(outcome, outcome.best), "16x1/4 s1 p2");
  EXPECT_EQ(name_at(outcome, outcome.shipped), "16x1/4 s1 p2");
  EXPECT_EQ(name_at(outcome, outcome.predicted), name_of(false, predicted));
  EXPECT_EQ(bench.judged, static_cast<int>(outcome.entries.size()));
}

TEST(TuneContest, NoiseDoesNotReplaceThePredictedOne) {
  FakeBench bench;
  const Choice predicted = predicted_choice(kMain, kH200);
  for (const Choice& c : choices_of(kMain, kH200)) bench.ms[name_of(false, c)] = 0.994;
  bench.ms[name_of(false, predicted)] = 1.0;
  const Outcome outcome = hold_contest(bench, kMain, choices_of(kMain, kH200), predicted);
  EXPECT_EQ(outcome.shipped, outcome.predicted);
  bench.timed = 0;
  for (auto& [name, ms] : bench.ms) ms = name == name_of(false, predicted) ? 1.0 : 0.97;
  EXPECT_NE(hold_contest(bench, kMain, choices_of(kMain, kH200), predicted).shipped, outcome.predicted);
}

TEST(TuneContest, WhereAllAreWrongNoneWins) {
  FakeBench bench;
  for (const Choice& c : choices_of(kMain, kH200)) bench.wrong.insert(name_of(false, c));
  const Choice predicted = predicted_choice(kMain, kH200);
  bench.wrong.insert(name_of(false, predicted));
  const Outcome outcome = hold_contest(bench, kMain, choices_of(kMain, kH200), predicted);
  EXPECT_EQ(outcome.best, -1);
  EXPECT_EQ(outcome.shipped, -1);
  EXPECT_EQ(bench.timed, 0);
}

class TuneRecord : public testing::Test {
 protected:
  TuneRecord() { path_ = testing::TempDir() + "scankit_tune_record.txt", std::remove(path_.c_str()); }
  ~TuneRecord() override { std::remove(path_.c_str()); }
  Outcome won(const std::string& name) {
    FakeBench bench;
    bench.ms = {{name, 0.5}};
    return hold_contest(bench, kMain, choices_of(kMain, kH200), predicted_choice(kMain, kH200));
  }
  std::string path_;
  const Machine machine_ = {"NVIDIA H200", 90, 132, "abc"};
};

TEST_F(TuneRecord, ARunThatWasCutOffGoesOn) {
  auto record = Record::open(path_, machine_);
  ASSERT_TRUE(record);
  EXPECT_FALSE(record->has(kMain));
  ASSERT_TRUE(record->add(kMain, won("8x2/4 s1 p2")));
  EXPECT_TRUE(record->has(kMain));
  Cell other = kMain;
  other.length = 4096;
  ASSERT_TRUE(record->add(other, won("16x1/4 s1 p2")));
  const auto text = read_whole_file(path_);
  ASSERT_TRUE(text);
  ASSERT_TRUE(write_file_atomically(path_, text->substr(0, text->size() - 5)));  // in the last line
  auto again = Record::open(path_, machine_);
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->has(kMain));
  EXPECT_FALSE(again->has(other));
  ASSERT_FALSE(again->rows().empty());
  EXPECT_EQ(name_of(false, again->rows()[0].choice), "8x2/4 s1 p2");
  EXPECT_NEAR(again->rows()[0].ms, 0.5, 0.01);
}

TEST_F(TuneRecord, WhatCrashedIsNotTriedAgain) {
  auto record = Record::open(path_, machine_);
  ASSERT_TRUE(record);
  const Choice choice = predicted_choice(kMain, kH200);
  EXPECT_FALSE(record->crashed(kMain, choice));
  ASSERT_TRUE(record->add_crash(kMain, choice));
  auto again = Record::open(path_, machine_);
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->crashed(kMain, choice));
  EXPECT_FALSE(again->has(kMain));
}

TEST_F(TuneRecord, TheTableIsMadeAgainOfWhatWasMeasured) {
  auto record = Record::open(path_, machine_);
  ASSERT_TRUE(record);
  ASSERT_TRUE(record->add(kMain, won("8x2/4 s1 p2")));
  const auto text = read_whole_file(path_);
  ASSERT_TRUE(text);
  Cell other = kMain;
  other.backward = true;
  const std::string name = name_of(other);
  ASSERT_TRUE(write_file_atomically(
      path_, *text + "time\t" + name + "\tnot_shipped/2 s1 p2\t0.1\t21\ntime\t" + name +
                 "\t4x4_straight/8 s1 p2\t0.3\t21\ntime\t" + name + "\t8x2/4 s3 p2\t0.2\t9\ndone\t" + name +
                 "\ntime\t" + "forward bf16 B1 D64 L64 N16\t4x4/2 s1 p2\t0.2\t9\n"));
  Machine machine;
  const auto again = Record::read(path_, &machine);
  ASSERT_TRUE(again);
  EXPECT_EQ(machine.gpu, machine_.gpu);
  EXPECT_EQ(table_text("", machine, again->rows()),
            "MEASURED_BACKWARD(90, 132, BF16, 16, 2048, 16384, 4x4_straight, 8, 1, 2)\n"
            "MEASURED_FORWARD(90, 132, BF16, 16, 2048, 16384, 8x2, 4, 1, 2)\n");
  ASSERT_TRUE(write_file_atomically(path_, "another file\n"));
  EXPECT_FALSE(Record::read(path_, &machine));
}

// A variant that this type no longer takes is not in it, and what won stays where the fastest is as good.
TEST_F(TuneRecord, TheTableMadeAgainHasWhatIsTakenAndWhatWon) {
  ASSERT_TRUE(Record::open(path_, machine_));
  const auto head = read_whole_file(path_);
  ASSERT_TRUE(head);
  const auto of = [](const char* type, int number, const char* first, const char* second) {
    const std::string name = std::string("backward ") + type + " B8 D2048 L2048 N16";
    return "time\t" + name + "\t" + first + "\t0.2\t21\ntime\t" + name + "\t" + second +
           "\t0.1995\t21\nwon\tbackward\t" + std::to_string(number) +
           "\t8\t2048\t2048\t16\t4x4_straight\t4\t1\t2\t0.2\t0.2\ndone\t" + name + "\n";
  };
  ASSERT_TRUE(write_file_atomically(path_, *head + of("f32", 0, "4x4_straight/4 s1 p2", "4x4/8 s1 p2") +
                                               of("bf16", 2, "4x4_straight/4 s1 p2", "8x2/8 s1 p2")));
  Machine machine;
  const auto again = Record::read(path_, &machine);
  ASSERT_TRUE(again);
  EXPECT_EQ(table_text("", machine, again->rows()),
            "MEASURED_BACKWARD(90, 132, BF16, 16, 2048, 16384, 4x4_straight, 4, 1, 2)\n"
            "MEASURED_BACKWARD(90, 132, F32, 16, 2048, 16384, 4x4, 8, 1, 2)\n");
}

TEST_F(TuneRecord, AnotherMachinesOrSourcesAreRefused) {
  ASSERT_TRUE(Record::open(path_, machine_));
  for (const Machine& other :
       {Machine{"NVIDIA H100", 90, 132, "abc"}, Machine{"NVIDIA H200", 90, 132, "abd"}})
    EXPECT_EQ(Record::open(path_, other).error().code, Errc::InvalidArgument);
}

TEST_F(TuneRecord, TheTableKeepsOtherGpusRowsAndReplacesItsOwn) {
  const std::string before =
      "// what it is\n// No rows yet: nothing\n"
      "MEASURED_FORWARD(90, 114, BF16, 16, 2048, 16384, 4x4, 2, 1, 2)\n"
      "MEASURED_FORWARD(90, 132, BF16, 16, 2048, 16384, 4x4, 2, 1, 2)\n"
      "MEASURED_BACKWARD(90, 132, BF16, 16, 2048, 16384, 4x4, 8, 1, 2)\n";
  auto record = Record::open(path_, machine_);
  ASSERT_TRUE(record);
  ASSERT_TRUE(record->add(kMain, won("8x2/4 s1 p2")));
  EXPECT_EQ(table_text(before, machine_, record->rows()),
            "// what it is\n"
            "MEASURED_BACKWARD(90, 132, BF16, 16, 2048, 16384, 4x4, 8, 1, 2)\n"
            "MEASURED_FORWARD(90, 114, BF16, 16, 2048, 16384, 4x4, 2, 1, 2)\n"
            "MEASURED_FORWARD(90, 132, BF16, 16, 2048, 16384, 8x2, 4, 1, 2)\n");
}

}  // namespace
}  // namespace scankit::selective_scan

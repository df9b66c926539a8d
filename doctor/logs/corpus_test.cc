// SPDX-License-Identifier: Apache-2.0
// What real users reported (doctor/tests/corpus), read by the rules alone. The floors are what the rules reach
// on each file; a change that loses reports must not pass unnoticed. Of a file that is shut only sums are printed.
#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

#include <iomanip>
#include <iostream>
#include <map>

#include "doctor/logs/explainer.h"
#include "doctor/model/finding.h"

namespace scankit::logs {
namespace {

struct Floor {
  const char* file;
  int least_entries;
  double least_right, most_wrong;
  int most_false_alarms;
  bool open;
};
// Of a set that is kept shut, a row with `open` false.
constexpr Floor kFloors[] = {{"open.yaml", 5065, 0.965, 0.0147, 0, true},
                             {"shut.yaml", 40, 0.775, 0.1750, 2, false}};

const std::string kCorpus = SCANKIT_SOURCE_DIR "/doctor/tests/corpus/";

struct Count {
  int right = 0, unknown = 0, wrong = 0;
  int all() const { return right + unknown + wrong; }
};

// "new: NAME" is the cause that classes.yaml gives it, "?" where the class has none yet.
std::string label_of(const YAML::Node& entry, const YAML::Node& classes) {
  const std::string label = entry["cause"].as<std::string>(), mark = "new: ";
  if (!label.starts_with(mark)) return label;
  const YAML::Node cause = classes[label.substr(mark.size())];
  return cause.IsDefined() ? cause.as<std::string>() : "?";
}

// The cause that the log is said to end in, "" where none is named.
std::string cause_of_log(const std::string& text) {
  const Log log = explain_text(text);
  return !log.hits.empty() && log.hits.front().role == "root" ? log.hits.front().cause : "";
}

std::map<std::string, Count> measured(const std::string& file) {
  const YAML::Node classes = YAML::LoadFile(kCorpus + "classes.yaml")["classes"];
  std::map<std::string, Count> counts;
  for (const YAML::Node& entry : YAML::LoadFile(kCorpus + file)) {
    const std::string label = label_of(entry, classes);
    const std::string answer = cause_of_log(entry["log"].as<std::string>());
    Count& count = counts[label];
    if (label == "none" ? answer.empty() : answer == label)
      ++count.right;
    else if (answer.empty())
      ++count.unknown;
    else
      ++count.wrong;
  }
  return counts;
}

void show(const std::string& name, const Count& count) {
  std::cout << std::left << std::setw(34) << name << std::right << std::setw(5) << count.right << std::setw(5)
            << count.unknown << std::setw(5) << count.wrong << '\n';
}

void holds(const Floor& floor) {
  Count all;
  const auto counts = measured(floor.file);
  for (const auto& [label, count] : counts) {
    if (floor.open) show(label, count);
    all.right += count.right;
    all.unknown += count.unknown;
    all.wrong += count.wrong;
  }
  show(floor.file, all);
  ASSERT_GE(all.all(), floor.least_entries);
  EXPECT_GE(all.right, floor.least_right * all.all());
  EXPECT_LE(all.wrong, floor.most_wrong * all.all());
  ASSERT_TRUE(counts.contains("none"));
  EXPECT_LE(counts.at("none").wrong, floor.most_false_alarms);
}

TEST(Corpus, OfRealReportsIsAnswered) {
  for (const Floor& floor : kFloors) holds(floor);
}

// A slip in a label would count as an unknown forever.
TEST(Corpus, HasLabelsOfTheCatalogue) {
  for (const Floor& floor : kFloors)
    for (const auto& [label, count] : measured(floor.file))
      EXPECT_TRUE(label == "none" || label == "?" || cause_from_slug(label)) << label;
}

}  // namespace
}  // namespace scankit::logs

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "ci/fleet/merge.h"
#include "ci/fleet/report.h"
#include "doctor/base/say.h"

namespace scankit::fleet {
namespace {

using Values = std::map<std::string, std::vector<std::string>>;  // value, the nodes that have it

// A spread of less than this share of the median is noise of the clock, not of the hardware; a case's error
// follows which of its elements came nearest to the bound, and only orders of magnitude mean something.
constexpr double kLeastSpeed = 0.10, kLeastError = 1.0;
// 1.4826 times the median absolute deviation is the standard deviation of normal noise; beyond five of them
// lies one of two million.
constexpr double kDeviations = 5 * 1.4826;
constexpr std::size_t kFewest = 3;  // of two that differ, neither is the odd one
// NTP keeps clocks within milliseconds; a second is lost by a daemon that started late.
constexpr double kClockTolerance = 2;

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// Among what a node's measure counts: GPUs of one kind, or processors.
std::string measured_kind(const NodeResult& node, const std::string& measure) {
  const auto fact = node.facts.find(measure.starts_with("cpu") ? "cpu" : "gpus");
  return fact == node.facts.end() ? "" : fact->second;
}

struct Sample {
  std::string node;
  double value;
  bool disturbed;
};

void judge_samples(const Measure& measure, const std::string& kind, const std::vector<Sample>& samples,
                   FleetReport& report) {
  std::vector<double> values, away;
  for (const Sample& sample : samples) values.push_back(sample.value);
  const double median = median_of(values);
  if (samples.size() < kFewest || !(median > 0)) return;
  for (const double value : values) away.push_back(std::abs(value - median));
  const double spread = median_of(away);
  const bool speed = measure.unit == "ms";
  const double allowed = std::max(kDeviations * spread, (speed ? kLeastSpeed : kLeastError) * median);
  for (const Sample& sample : samples) {
    const bool worse = sample.value > median + allowed;
    if (worse || (speed && sample.value < median - allowed))
      report.outliers.push_back({sample.node, measure.name, measure.unit, kind, sample.value, median, spread,
                                 worse, sample.disturbed});
  }
}

// A fact that a node does not have at all is a difference, too.
void add_those_without(Values& values, const std::vector<std::string>& told) {
  std::set<std::string> have;
  for (const auto& [value, of] : values) have.insert(of.begin(), of.end());
  if (have.size() == told.size()) return;
  for (const std::string& node : told)
    if (!have.contains(node)) values["none"].push_back(node);
}

// The fact that decides this one: the release of torch comes with its libraries and the CUDA packages it
// asks for, and a Python with its folder. "" where nothing does.
std::string leader_of(const std::string& fact) {
  if (fact.starts_with("build:") || fact.starts_with("wheel:") || fact == "cuda of torch" ||
      fact == "torch's metadata")
    return "torch";
  return fact == "torch's folder" || fact.starts_with("module:") ? "python's file" : "";
}

// Whether nodes that agree on the one agree on the other: then the second says nothing new.
bool follows(const Values& values, const Values& leader) {
  std::map<std::string, std::string> value_of;
  for (const auto& [value, nodes] : values)
    for (const std::string& node : nodes) value_of[node] = value;
  return std::ranges::all_of(leader, [&](const auto& group) {
    return std::ranges::all_of(group.second, [&](const std::string& node) {
      return value_of[node] == value_of[group.second.front()];
    });
  });
}

Difference difference_of(const std::string& fact, const Values& values, std::size_t told) {
  Difference difference;
  difference.fact = fact;
  for (const auto& [value, of] : values)
    if (2 * of.size() > told) {
      difference.common = value;
      difference.agreeing = of.size();
    }
  for (const auto& [value, of] : values)
    if (difference.agreeing == 0 || value != difference.common) difference.others.emplace_back(value, of);
  std::ranges::stable_sort(difference.others, std::ranges::greater{},
                           [](const auto& other) { return other.second.size(); });
  return difference;
}

}  // namespace

void compare_facts(FleetReport& report) {
  std::map<std::string, Values> facts;
  std::vector<std::string> told;
  for (const NodeLine& node : report.nodes) {
    if (!node.result || node.result->facts.empty()) continue;
    told.push_back(node.name);
    for (const auto& [fact, value] : node.result->facts) facts[fact][value].push_back(node.name);
    // One launch has one command; what was collected by hand may have several.
    if (report.command.empty()) facts["command"][command_line(node.result->command)].push_back(node.name);
  }
  std::map<std::string, std::vector<std::string>> with;
  for (auto& [fact, values] : facts) add_those_without(values, told);
  const auto differs = [&](const std::string& fact) {
    const auto found = facts.find(fact);
    return found != facts.end() && found->second.size() > 1;
  };
  for (const auto& [fact, values] : facts) {
    Difference difference = difference_of(fact, values, told.size());
    if (difference.agreeing > 0) report.common[fact] = difference.common;
    if (!differs(fact)) continue;
    const std::string leader = leader_of(fact);
    if (differs(leader) && follows(values, facts.at(leader)))
      with[leader].push_back(fact);
    else
      report.differences.push_back(std::move(difference));
  }
  for (Difference& difference : report.differences) difference.with_it = with[difference.fact];
}

void find_outliers(FleetReport& report) {
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<Sample>> samples;
  std::map<std::pair<std::string, std::string>, std::vector<double>> all;
  for (const NodeLine& node : report.nodes) {
    if (!node.result) continue;
    for (const Measure& m : node.result->summary.measures) {
      samples[{m.name, m.unit, measured_kind(*node.result, m.name)}].push_back(
          {node.name, m.value, m.disturbed});
      all[{m.name, m.unit}].push_back(m.value);
    }
  }
  for (const auto& [key, values] : samples)
    judge_samples({std::get<0>(key), std::get<1>(key), 0}, std::get<2>(key), values, report);
  for (const auto& [key, values] : all) report.medians.push_back({key.first, key.second, median_of(values)});
}

// A node's line reaches the launcher after it was sent, and was sent after the launch: between the two lies
// by how much the clocks differ, however slow the network.
void judge_clock(NodeLine& node, const AskedNode* asked) {
  node.clock_low = -std::numeric_limits<double>::infinity();
  node.clock_high = std::numeric_limits<double>::infinity();
  if (node.result && node.result->launched > 0) {
    node.clock_high = node.result->started - node.result->launched;
    // What the roster saw is of the last launch; the result may be of the one before.
    if (asked != nullptr && asked->asked == node.result->launched) {
      if (asked->started > 0) node.clock_low = asked->node_clock - asked->started;
      if (asked->reported > 0)
        node.clock_low = std::max(node.clock_low, node.result->ended - asked->reported);
    }
  } else if (!node.result && asked != nullptr && asked->started > 0) {
    node.clock_low = asked->node_clock - asked->started;
    node.clock_high = asked->node_clock - asked->asked;
  }
  node.clock_known = std::isfinite(node.clock_low) || std::isfinite(node.clock_high);
  node.clock_apart = node.clock_low > kClockTolerance || node.clock_high < -kClockTolerance;
  if (!node.clock_apart) return;
  node.notes.push_back(node.clock_low > kClockTolerance
                           ? say("its clock is at least {:.0f} s ahead of the launcher's", node.clock_low)
                           : say("its clock is at least {:.0f} s behind the launcher's", -node.clock_high));
}

}  // namespace scankit::fleet

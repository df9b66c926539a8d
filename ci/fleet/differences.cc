// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "ci/fleet/report.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"

// What differs between nodes: facts, measured numbers and clocks. A difference alone is never a fault; it
// helps to explain why one of a thousand nodes fails.
namespace scankit::fleet {
namespace {

using FactsByName = std::map<std::string, std::string>;

// Adds what `name` says of a probe: its value, that there is none, or that it could not be read.
template <class T, class Add>
void of_probe(const Probed<T>& probe, const std::string& name, FactsByName& facts, Add add) {
  if (probe.present())
    add(probe.value);
  else
    facts[name] = probe.state == ProbeState::Absent ? "none" : say("unknown: {}", probe.note);
}

// "8 x NVIDIA H100": number and kind, whatever the order.
std::string gpus_in_words(const std::vector<Gpu>& gpus) {
  std::map<std::string, std::size_t> kinds;
  for (const Gpu& gpu : gpus) ++kinds[gpu.name.empty() ? gpu.pci_device : gpu.name];
  std::string words;
  for (const auto& [kind, count] : kinds)
    words += (words.empty() ? "" : ", ") + std::to_string(count) + " x " + kind;
  return words;
}

void of_machine(const Snapshot& s, FactsByName& facts) {
  of_probe(s.os, "system", facts, [&](const Os& os) {
    facts["system"] = os.pretty_name.empty() ? os.id + " " + os.version_id : os.pretty_name;
    facts["kernel"] = os.kernel;
  });
  of_probe(s.libc, "libc", facts, [&](const LibC& libc) { facts["libc"] = libc.kind + " " + libc.version; });
  of_probe(s.libstdcxx, "libstdc++", facts,
           [&](const LibStdCxx& lib) { facts["libstdc++"] = "GLIBCXX_" + lib.glibcxx_max; });
  of_probe(s.cpu, "cpu", facts, [&](const Cpu& cpu) { facts["cpu"] = cpu.model; });
  of_probe(s.driver, "driver", facts, [&](const Driver& driver) {
    facts["driver"] = driver.version;
    facts["libcuda"] =
        driver.libcuda_version + (driver.libcuda_kind == "driver" ? "" : " " + driver.libcuda_kind);
    if (!driver.cuda_version.empty()) facts["cuda of the driver"] = driver.cuda_version;
    if (!driver.nvml_error.empty()) facts["nvml"] = driver.nvml_error;
  });
  of_probe(s.gpus, "gpus", facts, [&](const std::vector<Gpu>& gpus) { facts["gpus"] = gpus_in_words(gpus); });
  for (const auto& [name, value] : s.environment)
    if (!name.starts_with("scankit.")) facts["$" + name] = value;  // what was asked is no fact of the node
}

// The files under diagnosis by their SHA-256, and the libraries that they use by build-id: a path says
// little about the content.
void of_files(const Snapshot& s, FactsByName& facts) {
  for (const std::string& module : s.modules) facts["module:" + module] = "not here";
  if (s.extensions.present())
    for (const Extension& extension : s.extensions.value) {
      if (!extension.selected || std::ranges::find(s.modules, extension.module) == s.modules.end()) continue;
      const std::string& path = extension.real_path.empty() ? extension.path : extension.real_path;
      const auto hash = sha256_file(path);
      facts["module:" + extension.module] = extension.path;
      facts["sha256:" + extension.module] = hash ? *hash : say("unknown: {}", hash.error().message);
    }
  if (!s.torch.present()) return;
  for (const Library& library : s.torch.value.libraries)
    if (!library.build_id.empty()) facts["build:" + path_basename(library.path)] = library.build_id;
  for (const NvidiaWheel& wheel : s.torch.value.nvidia_wheels) facts["wheel:" + wheel.name] = wheel.version;
}

}  // namespace

std::map<std::string, std::string> facts_of(const Snapshot& snapshot) {
  FactsByName facts;
  of_machine(snapshot, facts);
  of_probe(snapshot.python, "python", facts, [&](const Python& python) {
    facts["python"] = python.version;
    facts["python's file"] = python.requested.empty() ? python.executable : python.requested;
  });
  of_probe(snapshot.torch, "torch", facts, [&](const Torch& torch) {
    facts["torch"] = torch.version;
    facts["cuda of torch"] = torch.cuda.empty() ? "none" : torch.cuda;
    facts["torch's folder"] = torch.location;
    if (torch.distribution_version != torch.version) facts["torch's metadata"] = torch.distribution_version;
  });
  of_files(snapshot, facts);
  return facts;
}

namespace {

using Values = std::map<std::string, std::vector<std::string>>;  // value, the nodes that have it

// The smallest deviation that counts, as a share of the median. Below 10 % a time differs by the clock,
// not by the hardware. The error of a case depends on which element came nearest to its bound, so that
// only a multiple means something.
constexpr double kLeastSpeed = 0.10, kLeastError = 1.0;
// The median absolute deviation times 1.4826 is the standard deviation of normal noise. Five standard
// deviations exclude all but one in two million samples.
constexpr double kDeviations = 5 * 1.4826;
constexpr std::size_t kFewest = 3;  // of two that differ, neither is the odd one
// NTP keeps clocks within milliseconds; a second is lost by a daemon that started late.
constexpr double kClockTolerance = 2;

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

// The hardware that a measure depends on: numbers are only compared between nodes with the same CPU, or
// the same GPUs.
std::string measured_kind(const NodeResult& node, const std::string& measure) {
  const auto fact = node.facts.find(measure.starts_with("cpu") ? "cpu" : "gpus");
  return fact == node.facts.end() ? "" : fact->second;
}

struct Sample {
  std::string node;
  double value;
  bool disturbed;
};

// Reports the samples that are too far from the median. Faster than the others is reported too, lower
// errors are not.
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
// asks for, a Python with its folder, and the record of an environment with its packages. "" where nothing does.
std::string leader_of(const std::string& fact) {
  if (fact.starts_with("build:") || fact.starts_with("wheel:") || fact == "cuda of torch" ||
      fact == "torch's metadata")
    return "torch";
  if (fact.starts_with("record")) {
    const auto package = fact.rfind(kPackageFact);
    if (package != std::string::npos) return fact.substr(0, package);
    return fact.ends_with(kLockFact) ? fact.substr(0, fact.size() - kLockFact.size()) : "";
  }
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

// The common value is the one that more than half of the nodes have; without one, all values are listed.
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

// A fact that only differs because another one does is listed with that one (`with_it`).
void compare_facts(FleetReport& report) {
  std::map<std::string, Values> facts;
  std::vector<std::string> told;
  for (const NodeEvent& node : report.nodes) {
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
    const bool of_package = fact.starts_with("record") && fact.find(kPackageFact) != std::string::npos;
    if (difference.agreeing > 0 && !of_package) report.common[fact] = difference.common;
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
  for (const NodeEvent& node : report.nodes) {
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

// Bounds for the difference of the clocks, without knowing the network's delay: a node's line
// arrives after it was sent, and was sent after the launch. The launch gives the upper bound, the
// arrival the lower one.
void judge_clock(NodeEvent& node, const AskedNode* asked) {
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
  node.notes.push_back(
      node.clock_low > kClockTolerance
          ? message("its clock is at least {:.0f} s ahead of the launcher's", node.clock_low)
          : message("its clock is at least {:.0f} s behind the launcher's", -node.clock_high));
}

}  // namespace scankit::fleet

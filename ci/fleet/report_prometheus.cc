// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <map>
#include <set>
#include <tuple>

#include "ci/fleet/report.h"
#include "doctor/report/escape.h"
#include "doctor/report/prometheus_family.h"

// Metrics for node_exporter's textfile collector. Each sample has the fleet's id as a label, so that files
// of two fleets do not collide.
namespace scankit::fleet {
namespace {

// "fleet" is the command in every sample: a node's own file beside it holds "doctor" or "ci".
struct Out {
  std::string text;
  std::string fleet;

  PrometheusFamily family(std::string_view name, std::string_view help) {
    return {text, "fleet", "fleet_" + std::string(name), help};
  }
};

std::string_view word(Verdict verdict) {
  if (verdict == Verdict::Passed) return "passed";
  return verdict == Verdict::Failed ? "failed" : "unknown";
}

// Nodes that passed are only counted: a series for each of a thousand healthy nodes would be
// a thousand series.
void write_nodes(Out& out, const FleetReport& report) {
  auto counts = out.family("nodes", "Nodes by what they came to");
  const std::size_t failed = report.count(Verdict::Failed), unknown = report.count(Verdict::Unknown);
  counts.sample({{"fleet", out.fleet}, {"verdict", "passed"}}, report.nodes.size() - failed - unknown);
  counts.sample({{"fleet", out.fleet}, {"verdict", "failed"}}, failed);
  counts.sample({{"fleet", out.fleet}, {"verdict", "unknown"}}, unknown);
  auto nodes = out.family("node", "A node that failed, or of which nothing is known");
  for (const NodeEvent& node : report.nodes)
    if (node.verdict != Verdict::Passed)
      nodes.sample({{"fleet", out.fleet},
                    {"node", node.name},
                    {"verdict", std::string(word(node.verdict))},
                    {"state", node.state}},
                   "1");
}

// Lines of one cause may differ only in their summary, which is not a label. They are merged, because the
// collector rejects a file with a repeated sample.
void write_causes(Out& out, const FleetReport& report) {
  std::map<std::tuple<std::string, std::string, std::string>, std::set<std::string>> found;
  for (const CauseLine& line : report.causes)
    found[{line.cause.cause, line.cause.severity, plain(line.cause.subject, false)}].insert(
        line.nodes.begin(), line.nodes.end());
  auto causes = out.family("cause_nodes", "Nodes on which a cause was found");
  for (const auto& [key, nodes] : found)
    causes.sample({{"fleet", out.fleet},
                   {"cause", std::get<0>(key)},
                   {"severity", std::get<1>(key)},
                   {"subject", std::get<2>(key)}},
                  nodes.size());
}

void write_outliers(Out& out, const FleetReport& report) {
  auto outliers = out.family("outlier", "A measure of a node beside the median of its like, as their ratio");
  for (const Outlier& one : report.outliers)
    if (one.median > 0)
      outliers.sample({{"fleet", out.fleet},
                       {"node", one.node},
                       {"measure", one.measure},
                       {"disturbed", one.disturbed ? "yes" : "no"}},
                      fmt::format("{:.4f}", one.value / one.median));
  auto medians = out.family("median", "Median over all nodes");
  for (const Measure& measure : report.medians)
    medians.sample({{"fleet", out.fleet}, {"measure", measure.name}, {"unit", measure.unit}},
                   fmt::format("{:.6g}", measure.value));
}

}  // namespace

std::string prometheus_report(const FleetReport& report, int exit_status) {
  Out out{.text = "", .fleet = report.fleet};
  out.family("exit_status", "Exit status of the report, as scankit's commands have it")
      .sample({{"fleet", out.fleet}}, std::to_string(exit_status));
  auto verdicts = out.family("verdict", "1 for the current verdict");
  for (const std::string_view verdict : {"healthy", "broken", "unknown"})
    verdicts.sample({{"fleet", out.fleet}, {"verdict", std::string(verdict)}},
                    verdict_word(report) == verdict ? "1" : "0");
  write_nodes(out, report);
  write_causes(out, report);
  auto differences = out.family("difference_nodes", "Nodes on which a fact is not as on most");
  for (const Difference& one : report.differences)
    for (const auto& [value, nodes] : one.others)
      differences.sample({{"fleet", out.fleet}, {"fact", one.fact}, {"value", value}}, nodes.size());
  write_outliers(out, report);
  out.family("strays", "Files that are no result of this fleet")
      .sample({{"fleet", out.fleet}}, report.strays.size());
  out.family("problems", "Why the fleet as a whole cannot be green")
      .sample({{"fleet", out.fleet}}, report.problems.size());
  return out.text;
}

}  // namespace scankit::fleet

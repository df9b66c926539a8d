// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "ci/fleet/report.h"
#include "doctor/base/say.h"
#include "doctor/report/document.h"
#include "doctor/report/escape.h"

// What a fleet's report shows on a page, to CI servers and to collectors.
namespace scankit::fleet {
namespace {

constexpr std::size_t kMostPlots = 6;

report::Problem problem_of(const NodeEvent& node) {
  const bool failed = node.verdict == Verdict::Failed;
  return {.severity = failed ? Severity::Error : Severity::Warning,
          .usual_severity = failed ? Severity::Error : Severity::Warning,
          .rule = node.state,
          .title = failed ? say("a node failed") : say("nothing is known of a node"),
          .subject = node.name,
          .told = {tr(node.why)}};
}

// A table of two columns under its title; without rows it is left out altogether.
void add_table(std::vector<report::Block>& blocks, std::string title, report::Table table,
               report::Fold fold = report::Fold::Open, report::Shown shown = report::Shown::Everywhere) {
  if (!table.rows.empty())
    blocks.push_back(report::PageSection{std::move(title), {std::move(table)}, fold, shown});
}

void add_nodes(std::vector<report::Block>& blocks, const FleetReport& report, Verdict verdict,
               std::string title) {
  report::Table table{{say("node"), say("reason")}, {}};
  for (const NodeEvent& node : report.nodes)
    if (node.verdict == verdict)
      table.rows.push_back({report::as_code(node.name), report::as_text(tr(node.why))});
  add_table(blocks, std::move(title), std::move(table));
}

void add_causes(std::vector<report::Block>& blocks, const FleetReport& report) {
  report::Table table{{say("item"), say("nodes")}, {}};
  for (const CauseLine& line : report.causes)
    table.rows.push_back(
        {{{line.cause.cause, true}, {" " + line.cause.summary}}, report::as_text(node_names(line.nodes))});
  add_table(blocks, say("Findings"), std::move(table));
}

void add_comparison(std::vector<report::Block>& blocks, const FleetReport& report) {
  report::Table differences{{say("fact"), say("value")}, {}}, outliers{{say("node"), say("item")}, {}};
  for (const Difference& d : report.differences)
    differences.rows.push_back({report::as_code(d.fact), report::as_text(difference_line(d))});
  for (const Outlier& o : report.outliers)
    outliers.rows.push_back({report::as_code(o.node), report::as_text(outlier_line(o))});
  add_table(blocks, say("Nodes differ (not a fault by itself)"), std::move(differences));
  add_table(blocks, say("Slower, faster or less accurate than nodes of the same kind"), std::move(outliers));
}

// One point for each node, and the median to which it was compared.
report::Plot measure_plot(const FleetReport& report, const Measure& median) {
  report::Plot plot{median.name, {say("node"), 0, 1, false}, {median.unit, 0, 1, false}, {}, {}};
  std::set<std::string> odd;
  for (const Outlier& o : report.outliers)
    if (o.measure == median.name) odd.insert(o.node);
  double at = 0;
  for (const NodeEvent& node : report.nodes) {
    ++at;
    if (!node.result) continue;
    for (const Measure& m : node.result->summary.measures)
      if (m.name == median.name && m.unit == median.unit)
        plot.points.push_back(
            {at, m.value, node.name, odd.contains(node.name) ? report::Tone::Error : report::Tone::Good});
  }
  if (plot.points.empty()) return plot;
  report::fit_axes(plot);
  plot.x.low = 0;
  plot.x.high = at + 1;
  plot.lines.push_back({say("median"), {{0, median.value}, {plot.x.high, median.value}}, true});
  return plot;
}

// The measures with the most outliers come first; at most kMostPlots are drawn.
report::PageSection plots_of(const FleetReport& report) {
  std::map<std::string, std::size_t> odd;
  for (const Outlier& o : report.outliers) ++odd[o.measure];
  std::vector<Measure> chosen = report.medians;
  std::ranges::stable_sort(chosen, std::ranges::greater{}, [&](const Measure& m) { return odd[m.name]; });
  if (chosen.size() > kMostPlots) chosen.resize(kMostPlots);
  report::PageSection section{say("Measured"), {}};
  for (const Measure& measure : chosen)
    if (report::Plot plot = measure_plot(report, measure); !plot.points.empty())
      section.blocks.push_back(std::move(plot));
  return section;
}

std::vector<report::Block> blocks_of(const FleetReport& report) {
  const std::size_t all = report.nodes.size();
  std::vector<report::Block> blocks;
  if (!report.command.empty())
    blocks.push_back(report::Paragraph{report::as_code(command_line(report.command))});
  for (const Message& note : report.notes) blocks.push_back(report::Paragraph{report::as_text(tr(note))});
  blocks.push_back(report::Bar{say_n(all, "{} node", "{} nodes", all),
                               {{say("failed"), report::Tone::Error, report.count(Verdict::Failed)},
                                {say("unknown"), report::Tone::Unknown, report.count(Verdict::Unknown)},
                                {say("passed"), report::Tone::Good, report.count(Verdict::Passed)}}});
  add_nodes(blocks, report, Verdict::Failed, say("Failed"));
  add_causes(blocks, report);
  add_nodes(blocks, report, Verdict::Unknown, say("Unknown"));
  add_comparison(blocks, report);
  blocks.push_back(plots_of(report));
  report::Table notes{{say("node"), say("note")}, {}}, strays{{say("file"), say("reason")}, {}},
      common{{say("fact"), say("value")}, {}};
  for (const NodeEvent& node : report.nodes)
    for (const Message& note : node.notes)
      notes.rows.push_back({report::as_code(node.name), report::as_text(tr(note))});
  for (const Stray& stray : report.strays)
    strays.rows.push_back({report::as_code(stray.file), report::as_text(tr(stray.why))});
  for (const auto& [fact, value] : report.common)
    common.rows.push_back({report::as_text(fact), report::as_code(value)});
  add_table(blocks, say("Notes"), std::move(notes));
  add_table(blocks, say("Files left out"), std::move(strays));
  add_table(blocks, say("Shared by most nodes"), std::move(common), report::Fold::Folded,
            report::Shown::OnPage);
  return blocks;
}

// A node that failed is a failure; one of which nothing is known is an error, since a skipped test is green to most.
report::Suite suite_of(const FleetReport& report) {
  report::Suite suite{"nodes", {}};
  for (const NodeEvent& node : report.nodes) {
    report::Test test{.group = "scankit.fleet", .name = node.name};
    if (node.verdict != Verdict::Passed) {
      test.state = node.verdict == Verdict::Failed ? report::TestState::Failed : report::TestState::Error;
      test.type = node.state;
      test.message = tr(node.why);
    }
    suite.tests.push_back(std::move(test));
  }
  for (const Message& problem : report.problems)
    suite.tests.push_back({.group = "scankit.fleet",
                           .name = "complete",
                           .state = report::TestState::Error,
                           .type = "unknown",
                           .message = tr(problem)});
  return suite;
}

std::string word(Verdict verdict) {
  if (verdict == Verdict::Passed) return "passed";
  return verdict == Verdict::Failed ? "failed" : "unknown";
}

// The metrics of a fleet: every sample has its id as a label, so that the files of two fleets do not collide.
class Metrics {
 public:
  explicit Metrics(std::string fleet) : fleet_(std::move(fleet)) {}
  void family(std::string name, std::string help) {
    metrics_.push_back({"fleet_" + name, std::move(help), {}});
  }
  void sample(std::vector<std::pair<std::string, std::string>> labels, std::string value) {
    labels.emplace(labels.begin(), "fleet", fleet_);
    metrics_.back().samples.push_back({std::move(labels), std::move(value)});
  }
  void sample(std::vector<std::pair<std::string, std::string>> labels, std::size_t value) {
    sample(std::move(labels), std::to_string(value));
  }
  std::vector<report::Metric> take() { return std::move(metrics_); }

 private:
  std::string fleet_;
  std::vector<report::Metric> metrics_;
};

// Nodes that passed are only counted: a series for each of a thousand healthy nodes would be
// a thousand series.
void add_nodes(Metrics& metrics, const FleetReport& report) {
  metrics.family("nodes", "Nodes by what they came to");
  const std::size_t failed = report.count(Verdict::Failed), unknown = report.count(Verdict::Unknown);
  metrics.sample({{"verdict", "passed"}}, report.nodes.size() - failed - unknown);
  metrics.sample({{"verdict", "failed"}}, failed);
  metrics.sample({{"verdict", "unknown"}}, unknown);
  metrics.family("node", "A node that failed, or of which nothing is known");
  for (const NodeEvent& node : report.nodes)
    if (node.verdict != Verdict::Passed)
      metrics.sample({{"node", node.name}, {"verdict", word(node.verdict)}, {"state", node.state}}, "1");
}

// Lines of one cause may differ only in their summary, which is not a label. They are merged, because the
// collector rejects a file with a repeated sample.
void add_causes(Metrics& metrics, const FleetReport& report) {
  std::map<std::tuple<std::string, std::string, std::string>, std::set<std::string>> found;
  for (const CauseLine& line : report.causes)
    found[{line.cause.cause, line.cause.severity, report::plain(line.cause.subject, false)}].insert(
        line.nodes.begin(), line.nodes.end());
  metrics.family("cause_nodes", "Nodes on which a cause was found");
  for (const auto& [key, nodes] : found)
    metrics.sample(
        {{"cause", std::get<0>(key)}, {"severity", std::get<1>(key)}, {"subject", std::get<2>(key)}},
        nodes.size());
}

void add_measures(Metrics& metrics, const FleetReport& report) {
  metrics.family("outlier", "A measure of a node beside the median of its like, as their ratio");
  for (const Outlier& one : report.outliers)
    if (one.median > 0)
      metrics.sample(
          {{"node", one.node}, {"measure", one.measure}, {"disturbed", one.disturbed ? "yes" : "no"}},
          fmt::format("{:.4f}", one.value / one.median));
  metrics.family("median", "Median over all nodes");
  for (const Measure& measure : report.medians) {
    const std::string value = fmt::format("{:.6g}", measure.value);
    metrics.sample({{"measure", measure.name}, {"unit", measure.unit}}, value);
  }
}

std::vector<report::Metric> metrics_of(const FleetReport& report, int exit_status) {
  Metrics metrics(report.fleet);
  metrics.family("exit_status", "Exit status of the report, as scankit's commands have it");
  metrics.sample({}, std::to_string(exit_status));
  metrics.family("verdict", "1 for the current verdict");
  for (const std::string_view verdict : {"healthy", "broken", "unknown"})
    metrics.sample({{"verdict", std::string(verdict)}}, verdict_word(report) == verdict ? "1" : "0");
  add_nodes(metrics, report);
  add_causes(metrics, report);
  metrics.family("difference_nodes", "Nodes on which a fact is not as on most");
  for (const Difference& one : report.differences)
    for (const auto& [value, nodes] : one.others)
      metrics.sample({{"fact", one.fact}, {"value", value}}, nodes.size());
  add_measures(metrics, report);
  metrics.family("strays", "Files that are no result of this fleet");
  metrics.sample({}, report.strays.size());
  metrics.family("problems", "Why the fleet as a whole cannot be green");
  metrics.sample({}, report.problems.size());
  return metrics.take();
}

report::Tone tone_of(std::string_view verdict) {
  if (verdict == "healthy") return report::Tone::Good;
  return verdict == "broken" ? report::Tone::Error : report::Tone::Unknown;
}

}  // namespace

report::Document fleet_document(const FleetReport& report, int exit_status) {
  report::Document document{.command = "fleet",
                            .verdict_word = std::string(verdict_word(report)),
                            .verdict = verdict_line(report),
                            .tone = tone_of(verdict_word(report)),
                            .exit_status = exit_status,
                            .facts = {report.common.begin(), report.common.end()},
                            .blocks = blocks_of(report),
                            .suites = {suite_of(report)},
                            .metrics = metrics_of(report, exit_status),
                            .environment = report.folder,
                            .tool_version = report.tool_version};
  for (const NodeEvent& node : report.nodes)
    if (node.verdict != Verdict::Passed) document.problems.push_back(problem_of(node));
  for (const Message& problem : report.problems) {
    document.lead.push_back(tr(problem));
    document.open.push_back(
        {.check = "fleet", .question = say("Is the fleet complete?"), .why = tr(problem)});
  }
  return document;
}

}  // namespace scankit::fleet

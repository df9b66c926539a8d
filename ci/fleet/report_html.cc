// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "ci/fleet/report.h"
#include "doctor/base/say.h"
#include "doctor/report/escape.h"
#include "doctor/report/html_page.h"
#include "validate/report/plot.h"

// The HTML report, with the frame of doctor's page and the plots of validate's.
namespace scankit::fleet {
namespace {

using html::code;
using validate::Plot;

constexpr std::size_t kMostPlots = 6;

std::string text(const std::string& words) { return html::paragraph(xml_escaped(words)); }

std::string titled(const std::string& title, const std::string& left, const std::string& right,
                   const html::Rows& rows) {
  return rows.empty() ? "" : html::heading(title) + html::table(left, right, rows);
}

std::string html_nodes(const FleetReport& report, Verdict verdict, const std::string& title,
                       const char* style) {
  std::string sections;
  for (const NodeEvent& node : report.nodes) {
    if (node.verdict != verdict) continue;
    sections += "<section class=\"finding " + std::string(style) + "\">\n<h3>" + code(node.name) + "</h3>\n" +
                text(tr(node.why)) + "</section>\n";
  }
  return sections.empty() ? "" : html::heading(title) + sections;
}

// One point for each node, and the median to which it was compared.
std::string measure_plot(const FleetReport& report, const Measure& median) {
  Plot plot{median.name, {say("node"), 0, 1, false}, {median.unit, 0, 1, false}, {}, {}};
  std::set<std::string> odd;
  for (const Outlier& o : report.outliers)
    if (o.measure == median.name) odd.insert(o.node);
  double at = 0;
  for (const NodeEvent& node : report.nodes) {
    ++at;
    if (!node.result) continue;
    for (const Measure& m : node.result->summary.measures)
      if (m.name == median.name && m.unit == median.unit)
        plot.points.push_back({at, m.value, node.name, odd.contains(node.name) ? "error" : "good"});
  }
  if (plot.points.empty()) return "";
  validate::fit_axes(plot);
  plot.x.low = 0;
  plot.x.high = at + 1;
  plot.lines.push_back({say("median"), {{0, median.value}, {plot.x.high, median.value}}, true});
  return validate::plot_svg(plot);
}

// The measures with the most outliers come first; at most kMostPlots are drawn.
std::string plots(const FleetReport& report) {
  std::map<std::string, std::size_t> odd;
  for (const Outlier& o : report.outliers) ++odd[o.measure];
  std::vector<Measure> chosen = report.medians;
  std::ranges::stable_sort(chosen, std::ranges::greater{}, [&](const Measure& m) { return odd[m.name]; });
  if (chosen.size() > kMostPlots) chosen.resize(kMostPlots);
  std::string out;
  for (const Measure& measure : chosen) out += measure_plot(report, measure);
  return out.empty() ? "" : html::heading(say("Measured")) + out;
}

}  // namespace

std::string html_report(const FleetReport& report) {
  const std::size_t all = report.nodes.size();
  std::string out;
  if (!report.command.empty()) out += html::paragraph(code(command_line(report.command)));
  for (const Message& problem : report.problems) out += text(tr(problem));
  for (const Message& note : report.notes) out += text(tr(note));
  out += html::bar(say_n(all, "{} node", "{} nodes", all),
                   {{say("failed"), "c-error", report.count(Verdict::Failed)},
                    {say("unknown"), "c-unknown", report.count(Verdict::Unknown)},
                    {say("passed"), "c-good", report.count(Verdict::Passed)}});
  out += html_nodes(report, Verdict::Failed, say("Failed"), "error");
  html::Rows causes, differences, outliers, notes, strays, common;
  for (const CauseLine& line : report.causes)
    causes.emplace_back(code(line.cause.cause) + " " + xml_escaped(line.cause.summary),
                        xml_escaped(node_names(line.nodes)));
  for (const Difference& d : report.differences)
    differences.emplace_back(xml_escaped(d.fact), xml_escaped(difference_line(d)));
  for (const Outlier& o : report.outliers) outliers.emplace_back(code(o.node), xml_escaped(outlier_line(o)));
  for (const NodeEvent& node : report.nodes)
    for (const Message& note : node.notes) notes.emplace_back(code(node.name), xml_escaped(tr(note)));
  for (const Stray& stray : report.strays) strays.emplace_back(code(stray.file), xml_escaped(tr(stray.why)));
  for (const auto& [fact, value] : report.common) common.emplace_back(xml_escaped(fact), code(value));
  out += titled(say("Findings"), say("item"), say("nodes"), causes);
  out += html_nodes(report, Verdict::Unknown, say("Unknown"), "note");
  out += titled(say("Nodes differ (not a fault by itself)"), say("fact"), say("value"), differences);
  out += titled(say("Slower, faster or less accurate than nodes of the same kind"), say("node"), say("item"),
                outliers);
  out += plots(report);
  out += titled(say("Notes"), say("node"), say("note"), notes);
  out += titled(say("Files left out"), say("file"), say("reason"), strays);
  out += html::folded(say("Shared by most nodes"), html::table(say("fact"), say("value"), common));
  return html_page(
      {"scankit fleet", verdict_line(report), std::string(verdict_word(report)), validate::kPlotStyle, out});
}

}  // namespace scankit::fleet

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "ci/fleet/report.h"
#include "doctor/base/columns.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/model/json.h"
#include "doctor/report/escape.h"

// The report for people: what is wrong comes first, and what a thousand nodes have in common
// takes one line.
namespace scankit::fleet {
namespace {

// How many lines of one kind are shown without -v: if a whole cluster fails, the first ones say enough.
constexpr std::size_t kMostLines = 20;

class Text {
 public:
  Text(const FleetReport& report, const report::TextStyle& style) : report_(report), style_(style) {}

  std::string whole() {
    head();
    nodes(say("Failed"), Verdict::Failed);
    causes();
    nodes(say("Unknown"), Verdict::Unknown);
    differences();
    outliers();
    node_notes();
    strays();
    remarks();
    if (style_.verbose) nodes(say("Passed"), Verdict::Passed);
    line("");
    line(painted(verdict_line(report_)));
    return out_;
  }

 private:
  void line(const std::string& text) {
    // colour is ours; all else is what files said
    out_ += (text.starts_with('\033') ? text : report::plain(text, style_.ascii)) + "\n";
  }
  std::string painted(const std::string& text) const {
    if (!style_.color) return text;
    const auto verdict = verdict_word(report_);
    const char* color = verdict == "healthy" ? "32" : verdict == "broken" ? "31" : "35";
    return "\033[1;" + std::string(color) + "m" + report::plain(text, style_.ascii) + "\033[0m";
  }
  void title(const std::string& text) {
    line("");
    line(text);
  }
  // Shows the first items, and says how many are left out.
  template <class Items, class Show>
  void some(const Items& items, Show show) {
    const std::size_t most = style_.verbose ? items.size() : kMostLines;
    for (std::size_t i = 0; i < items.size() && i < most; ++i) show(items[i]);
    if (items.size() > most) line("  " + say("and {} more: -v lists them", items.size() - most));
  }

  void head() {
    line(say("Fleet {} in {}", report_.fleet, report_.folder));
    if (!report_.command.empty()) line("  " + in_column(say("command"), 10) + command_line(report_.command));
    for (const char* fact : {"gpus", "driver", "torch", "cuda of torch", "python"})
      if (const auto value = report_.common.find(fact); value != report_.common.end())
        line("  " + in_column(fact, 15) + value->second);
  }

  void nodes(const std::string& heading, Verdict verdict) {
    std::vector<const NodeEvent*> chosen;
    for (const NodeEvent& node : report_.nodes)
      if (node.verdict == verdict) chosen.push_back(&node);
    if (chosen.empty()) return;
    title(heading + " (" + std::to_string(chosen.size()) + ")");
    std::size_t width = 0;
    for (const auto* node : chosen) width = std::max(width, columns_of(node->name) + 2);
    some(chosen, [&](const NodeEvent* node) {
      line("  " + in_column(node->name, std::min<std::size_t>(width, 32)) + tr(node->why));
    });
  }

  void causes() {
    if (report_.causes.empty()) return;
    title(say("Findings"));
    some(report_.causes, [&](const CauseLine& c) {
      line("  " + c.cause.severity + " " + c.cause.cause + ": " + c.cause.summary);
      line("    " + say("on {}", node_names(c.nodes)));
    });
  }

  void differences() {
    if (report_.differences.empty()) return;
    title(say("Nodes differ (not a fault by itself)"));
    some(report_.differences,
         [&](const Difference& d) { line("  " + in_column(d.fact, 20) + difference_line(d)); });
  }

  void outliers() {
    if (report_.outliers.empty()) return;
    title(say("Slower, faster or less accurate than nodes of the same kind"));
    some(report_.outliers, [&](const Outlier& o) { line("  " + in_column(o.node, 12) + outlier_line(o)); });
  }

  void node_notes() {
    std::vector<std::pair<std::string, Message>> notes;
    for (const NodeEvent& node : report_.nodes)
      for (const Message& note : node.notes) notes.emplace_back(node.name, note);
    if (notes.empty()) return;
    title(say("Notes"));
    some(notes, [&](const auto& note) { line("  " + in_column(note.first, 12) + tr(note.second)); });
  }

  void strays() {
    if (report_.strays.empty()) return;
    title(say("Files left out"));
    some(report_.strays, [&](const Stray& stray) { line("  " + stray.file + ": " + tr(stray.why)); });
  }

  void remarks() {
    if (report_.notes.empty() && report_.problems.empty()) return;
    line("");
    for (const Message& note : report_.notes) line(say("note: {}", note));
    for (const Message& problem : report_.problems) line(say("unknown: {}", problem));
  }

  const FleetReport& report_;
  const report::TextStyle& style_;
  std::string out_;
};

}  // namespace

std::string text_report(const FleetReport& report, const report::TextStyle& style) {
  return Text(report, style).whole();
}

// The JSON of `scankit fleet`; ci/fleet/schema/fleet-report-1.json describes it. Missing values are null,
// and fields are only added within one schema.

namespace {
using Json = nlohmann::ordered_json;

Json or_null(const std::string& text) { return text.empty() ? Json() : Json(text); }
Json in_english(const std::vector<Message>& messages) {
  Json texts = Json::array();
  for (const Message& each : messages) texts.push_back(english(each));
  return texts;
}
Json or_null(double value) { return std::isfinite(value) ? Json(value) : Json(); }

// All fields are always there, so that a reader needs no check for their presence.
Json node_json(const NodeEvent& node) {
  static constexpr const char* kVerdicts[] = {"passed", "failed", "unknown"};
  Json json{{"node", node.name},
            {"verdict", kVerdicts[static_cast<int>(node.verdict)]},
            {"state", node.state},
            {"why", or_null(english(node.why))},
            {"exit_status", nullptr},
            {"seconds", nullptr},
            {"tool_version", nullptr},
            {"causes", Json::array()},
            {"wrong", 0},
            {"clock", nullptr},
            {"notes", in_english(node.notes)}};
  if (node.clock_known)
    json["clock"] = {{"ahead_at_least", or_null(node.clock_low)},
                     {"ahead_at_most", or_null(node.clock_high)},
                     {"apart", node.clock_apart}};
  if (!node.result) return json;
  const NodeResult& result = *node.result;
  if (result.end == "exited") json["exit_status"] = result.exit_status;
  json["seconds"] = result.ended - result.started;
  json["tool_version"] = result.tool_version;
  for (const Cause& cause : result.summary.causes) json["causes"].push_back(cause.cause);
  json["wrong"] = result.summary.failed;
  return json;
}

Json difference_json(const Difference& difference) {
  Json json{{"fact", difference.fact}, {"agreeing", difference.agreeing}};
  json["common"] = difference.agreeing > 0 ? Json(difference.common) : Json();
  json["others"] = Json::array();
  for (const auto& [value, nodes] : difference.others)
    json["others"].push_back({{"value", value}, {"nodes", nodes}});
  json["with_it"] = difference.with_it;
  return json;
}

Json cause_json(const CauseLine& line) {
  return {{"cause", line.cause.cause},
          {"severity", line.cause.severity},
          {"summary", line.cause.summary},
          {"nodes", line.nodes}};
}

Json outlier_json(const Outlier& o) {
  return {{"node", o.node},     {"measure", o.measure}, {"unit", o.unit},
          {"among", o.kind},    {"value", o.value},     {"median", o.median},
          {"spread", o.spread}, {"worse", o.worse},     {"disturbed", o.disturbed}};
}

}  // namespace

std::string json_report(const FleetReport& report, int exit_status) {
  Json json{{"$schema", kReportSchema},
            {"schema", kReportSchema},
            {"verdict", verdict_word(report)},
            {"exit_status", exit_status},
            {"fleet", or_null(report.fleet)},
            {"engine", or_null(report.engine)},
            {"command", report.command},
            {"counts",
             {{"nodes", report.nodes.size()},
              {"passed", report.count(Verdict::Passed)},
              {"failed", report.count(Verdict::Failed)},
              {"unknown", report.count(Verdict::Unknown)},
              {"warnings", report.warnings()}}},
            {"common", report.common}};
  const auto list = [&](const char* key, const auto& items, auto as_json) {
    json[key] = Json::array();
    for (const auto& item : items) json[key].push_back(as_json(item));
  };
  list("nodes", report.nodes, node_json);
  list("causes", report.causes, cause_json);
  list("differences", report.differences, difference_json);
  list("outliers", report.outliers, outlier_json);
  list("medians", report.medians, [](const Measure& m) {
    return Json{{"measure", m.name}, {"unit", m.unit}, {"value", m.value}};
  });
  list("left_out", report.strays, [](const Stray& stray) {
    return Json{{"file", stray.file}, {"kind", stray.kind}, {"why", english(stray.why)}};
  });
  json["notes"] = in_english(report.notes);
  json["problems"] = in_english(report.problems);
  return json_document(json);
}

}  // namespace scankit::fleet

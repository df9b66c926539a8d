// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <nlohmann/json.hpp>

#include "ci/fleet/report.h"
#include "doctor/base/say.h"
#include "doctor/model/json.h"

// The JSON of `scankit fleet`; ci/fleet/schema/fleet-report-1.json describes it. Missing values are null,
// and fields are only added within one schema.
namespace scankit::fleet {
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

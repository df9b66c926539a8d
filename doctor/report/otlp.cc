// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "doctor/model/json.h"
#include "doctor/report/document.h"
#include "doctor/report/escape.h"

namespace scankit::report {
namespace {

using OtlpJson = nlohmann::ordered_json;

OtlpJson key_value(const std::string& key, const std::string& text) {
  return {{"key", key}, {"value", {{"stringValue", plain(text, false)}}}};
}

// A series may occur once in a request, as in a file of Prometheus.
OtlpJson data_points(const Metric& metric, const std::string& command, std::uint64_t nanoseconds) {
  OtlpJson points = OtlpJson::array();
  std::set<std::string> seen;
  for (const Metric::Sample& sample : metric.samples) {
    OtlpJson attributes = OtlpJson::array({key_value("command", command)});
    for (const auto& [label, text] : sample.labels) attributes.push_back(key_value(label, text));
    if (!seen.insert(dump_json(attributes)).second) continue;
    // 64-bit integers are texts in the JSON of protobuf.
    points.push_back({{"attributes", std::move(attributes)},
                      {"timeUnixNano", std::to_string(nanoseconds)},
                      {"asDouble", std::strtod(sample.value.c_str(), nullptr)}});
  }
  return points;
}

}  // namespace

std::string otlp_at(const Document& document, std::uint64_t nanoseconds) {
  OtlpJson metrics = OtlpJson::array();
  for (const Metric& metric : document.metrics)
    if (OtlpJson points = data_points(metric, document.command, nanoseconds); !points.empty())
      metrics.push_back({{"name", "scankit_" + metric.name},
                         {"description", metric.help},
                         {"gauge", {{"dataPoints", std::move(points)}}}});
  OtlpJson scope_metrics = OtlpJson::object();
  scope_metrics["scope"] = {{"name", "scankit"}, {"version", document.tool_version}};
  scope_metrics["metrics"] = std::move(metrics);
  OtlpJson resource_metrics = OtlpJson::object();
  resource_metrics["resource"]["attributes"] = OtlpJson::array(
      {key_value("service.name", "scankit"), key_value("service.version", document.tool_version)});
  resource_metrics["scopeMetrics"] = OtlpJson::array({std::move(scope_metrics)});
  OtlpJson request = OtlpJson::object();
  request["resourceMetrics"] = OtlpJson::array({std::move(resource_metrics)});
  return json_document(request);
}

std::string otlp_of(const Document& document) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return otlp_at(document, static_cast<std::uint64_t>(
                               std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()));
}

}  // namespace scankit::report

// SPDX-License-Identifier: Apache-2.0
#include "doctor/report/sinks.h"

#include "doctor/report/json.h"
#include "doctor/report/text.h"

namespace scankit {
namespace {

// One row for each format; `--report`, its help and its validation all use this table.
struct Sink {
  std::string_view format;
  std::string (*render)(const Report&, const SinkOptions&);
};

const std::vector<Sink>& sinks() {
  static const std::vector<Sink> all = {
      {"text",
       [](const Report& report, const SinkOptions& options) {
         return doctor_text(report, {.ascii = false, .verbose = options.verbose});
       }},
      {"json", [](const Report& report, const SinkOptions&) { return doctor_json(report); }},
      {"junit", [](const Report& report, const SinkOptions&) { return doctor_junit(report); }},
      {"sarif", doctor_sarif},
      {"github", [](const Report& report, const SinkOptions&) { return doctor_github(report); }},
      {"markdown", [](const Report& report, const SinkOptions&) { return doctor_markdown(report); }},
      {"html", [](const Report& report, const SinkOptions&) { return doctor_html(report); }},
      {"prometheus", doctor_prometheus},
  };
  return all;
}

}  // namespace

const std::vector<std::string_view>& report_formats() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> out;
    for (const Sink& sink : sinks()) out.push_back(sink.format);
    return out;
  }();
  return names;
}

std::string render(std::string_view format, const Report& report, const SinkOptions& options) {
  for (const Sink& sink : sinks())
    if (sink.format == format) return sink.render(report, options);
  return "";
}

}  // namespace scankit

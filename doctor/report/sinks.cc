// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/say.h"
#include "doctor/report/document.h"

namespace scankit::report {
namespace {

// One row for each format; `--report`, its help and its validation all use this table. Text and JSON are each command's own:
// text is laid out by hand for a terminal, and JSON has a published schema for each command.
struct Sink {
  std::string_view format;
  bool for_people;
  std::string (*render)(const Document&);
};

const std::vector<Sink>& sinks() {
  static const std::vector<Sink> all = {
      {"text", true, nullptr},           {"json", false, nullptr},
      {"junit", false, junit_of},        {"sarif", false, sarif_of},
      {"github", false, annotations_of}, {"markdown", true, markdown_of},
      {"html", true, html_of},           {"prometheus", false, prometheus_of},
      {"otlp", false, otlp_of},
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

std::string render(std::string_view format, const Views& views, bool verbose) {
  for (const Sink& sink : sinks()) {
    if (sink.format != format) continue;
    const Speaking language(sink.for_people ? spoken_language() : nullptr);
    if (format == "text") return views.text({.ascii = false, .verbose = verbose});
    return format == "json" ? views.json() : sink.render(views.document());
  }
  return "";
}

}  // namespace scankit::report

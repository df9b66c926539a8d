// SPDX-License-Identifier: Apache-2.0
#include "ci/fleet/report.h"

#include "doctor/base/say.h"
#include "doctor/report/plain.h"

namespace scankit::fleet {
namespace {

struct Sink {
  std::string_view format;
  bool for_programs;
  std::string (*render)(const FleetReport&, int);
};

const std::vector<Sink>& sinks() {
  static const std::vector<Sink> all = {
      {"text", false,
       [](const FleetReport& report, int) { return text_report(report, {.ascii = false, .verbose = true}); }},
      {"json", true, json_report},
      {"junit", true, [](const FleetReport& report, int) { return junit_report(report); }},
      {"markdown", false, [](const FleetReport& report, int) { return markdown_report(report); }},
      {"prometheus", true, prometheus_report},
      {"html", false, [](const FleetReport& report, int) { return html_report(report); }},
  };
  return all;
}

}  // namespace

std::string_view verdict_word(const FleetReport& report) {
  if (report.count(Verdict::Failed) > 0) return "broken";
  return report.count(Verdict::Unknown) > 0 || !report.problems.empty() ? "unknown" : "healthy";
}

std::string verdict_line(const FleetReport& report) {
  const std::size_t all = report.nodes.size(), failed = report.count(Verdict::Failed),
                    unknown = report.count(Verdict::Unknown), warnings = report.warnings();
  const std::string counts =
      say("{} of {} nodes passed, {} failed, {} unknown", all - failed - unknown, all, failed, unknown);
  return std::string(verdict_word(report)) + ": " + counts + "; " +
         say_n(warnings, "{} warning", "{} warnings", warnings);
}

std::string node_names(const std::vector<std::string>& nodes, std::size_t most) {
  std::string names;
  for (std::size_t i = 0; i < nodes.size() && i < most; ++i) names += (i == 0 ? "" : ", ") + nodes[i];
  return nodes.size() <= most ? names : say("{}, and {} others", names, nodes.size() - most);
}

std::string difference_line(const Difference& difference) {
  std::string others;
  for (const auto& [value, nodes] : difference.others)
    others += (others.empty() ? "" : "; ") + say("{} on {}", value, node_names(nodes));
  const std::string line =
      difference.agreeing == 0 ? others : say("{}; most have {}", others, difference.common);
  const std::size_t n = difference.with_it.size();
  if (n == 0) return line;
  return say_n(n, "{} (and {} fact that follows from it)", "{} (and {} facts that follow from it)", line, n);
}

std::string outlier_line(const Outlier& o) {
  const double times = o.median > 0 ? o.value / o.median : 0;
  if (o.disturbed)
    return say("{}: {:.4g} {} where the median is {:.4g}: {:.2f} times it, measured while it had other work",
               o.measure, o.value, o.unit, o.median, times);
  return say("{}: {:.4g} {} where the median is {:.4g}: {:.2f} times it", o.measure, o.value, o.unit,
             o.median, times);
}

std::string command_line(const std::vector<std::string>& command) {
  std::string words = "scankit";
  for (const std::string& word : command) words += " " + shell_quoted(word);
  return words;
}

const std::vector<std::string_view>& fleet_formats() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> out;
    for (const Sink& sink : sinks()) out.push_back(sink.format);
    return out;
  }();
  return names;
}

std::string rendered(std::string_view format, const FleetReport& report, int exit_status) {
  for (const Sink& sink : sinks()) {
    if (sink.format != format) continue;
    const Speaking language(sink.for_programs ? nullptr : spoken_language());
    return sink.render(report, exit_status);
  }
  return "";
}

}  // namespace scankit::fleet

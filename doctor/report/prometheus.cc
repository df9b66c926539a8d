// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "doctor/report/document.h"
#include "doctor/report/escape.h"

namespace scankit::report {
namespace {

// Every sample has a label with the command, because the collector refuses two files with the same series.
std::string series_of(const std::string& name, const std::string& command, const Metric::Sample& sample) {
  std::string series = name + "{command=\"" + prometheus_label(command) + "\"";
  for (const auto& [label, text] : sample.labels)
    series += "," + label + "=\"" + prometheus_label(text) + "\"";
  return series + "}";
}

}  // namespace

Metric exit_status_metric(int status) {
  return {"exit_status",
          "Exit status of the run: 0 clean, 1 findings, 2 usage, 3 own failure, 4 inconclusive, 5 build "
          "failed, 6 validation failed, 7 drift",
          {{{}, std::to_string(status)}}};
}

// There is no time in it: node_exporter's node_textfile_mtime_seconds tells when the file was written. Two labels may become
// equal when they are escaped, and the collector refuses the whole file for a series that occurs twice: the first one stays.
std::string prometheus_of(const Document& document) {
  std::string out;
  for (const Metric& metric : document.metrics) {
    const std::string name = "scankit_" + metric.name;
    out += "# HELP " + name + " " + metric.help + "\n# TYPE " + name + " gauge\n";
    std::set<std::string> seen;
    for (const Metric::Sample& sample : metric.samples) {
      const std::string series = series_of(name, document.command, sample);
      if (seen.insert(series).second) out += series + " " + sample.value + "\n";
    }
  }
  return out;
}

}  // namespace scankit::report

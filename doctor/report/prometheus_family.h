// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doctor/report/escape.h"

namespace scankit {

// One metric family of the text format 0.0.4, as node_exporter's textfile collector reads it: HELP and
// TYPE once, then the samples, all of which must follow each other. Every sample has a label with the
// command, because the collector refuses two files with the same series.
class PrometheusFamily {
 public:
  using Labels = std::vector<std::pair<std::string_view, std::string>>;

  // Writes the header at once, so a family is created where its samples follow. `help` must be plain
  // ASCII without line ends. All families are gauges.
  PrometheusFamily(std::string& out, std::string command, std::string_view name, std::string_view help)
      : out_(out), command_(std::move(command)), name_("scankit_" + std::string(name)) {
    out_ += "# HELP " + name_ + " " + std::string(help) + "\n# TYPE " + name_ + " gauge\n";
  }
  void sample(const Labels& labels, const std::string& value) {
    out_ += name_ + "{command=\"" + command_ + "\"";
    for (const auto& [name, text] : labels)
      out_ += "," + std::string(name) + "=\"" + prometheus_label(text) + "\"";
    out_ += "} " + value + "\n";
  }
  void sample(const Labels& labels, std::size_t value) { sample(labels, std::to_string(value)); }

 private:
  std::string& out_;
  std::string command_, name_;
};

}  // namespace scankit

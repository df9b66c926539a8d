// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doctor/report/escape.h"

namespace scankit {

// One family of the exposition format 0.0.4, as node_exporter's textfile collector reads it: HELP and TYPE
// once, then its samples. Each sample says of which command it is: the collector refuses two files with the
// same one.
class PrometheusFamily {
 public:
  using Labels = std::vector<std::pair<std::string_view, std::string>>;

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

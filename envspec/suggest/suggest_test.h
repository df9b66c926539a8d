// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <string>
#include <vector>

#include "doctor/base/text.h"
#include "envspec/suggest/solve.h"
#include "envspec/suggest/suggest.h"

// Machines as a line of YAML, for tests only.
namespace scankit::envspec {

using Texts = std::vector<std::string>;

inline Texts texts_of(const YAML::Node& node) { return node ? node.as<Texts>() : Texts(); }
inline std::string text_of(const YAML::Node& node) { return node ? node.as<std::string>() : ""; }

// The request that `env suggest` makes of a described machine.
inline SuggestRequest request_of(const YAML::Node& machine) {
  DescribedTarget described;
  described.machine = machine["machine"] ? text_of(machine["machine"]) : "x86_64";
  described.gpus = machine["gpu"] ? split(text_of(machine["gpu"]), ",") : Texts{"none"};
  described.driver = text_of(machine["driver"]);
  described.glibc = text_of(machine["glibc"]);
  described.python = text_of(machine["python"]);
  SuggestRequest request = target_of(described, Snapshot(), "a test").value().request;
  Texts packages = texts_of(machine["packages"]);
  for (const char* name : {"mamba-ssm", "causal-conv1d"})
    if (std::ranges::none_of(packages, [&](const std::string& one) { return one.starts_with(name); }))
      packages.emplace_back(name);
  for (const std::string& package : packages) request.packages.push_back(parse_package_wish(package).value());
  request.release_pages = !machine["release_pages"] || machine["release_pages"].as<bool>();
  return request;
}

inline SuggestedSet best_of(const std::string& machine) {
  return suggest(request_of(YAML::Load(machine))).sets.front();
}

}  // namespace scankit::envspec

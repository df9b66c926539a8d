// SPDX-License-Identifier: Apache-2.0
#include "doctor/knowledge/importers.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <vector>

extern "C" const char scankit_knowledge_import_names[], scankit_knowledge_import_names_end[];
extern "C" const char scankit_knowledge_importers[], scankit_knowledge_importers_end[];

namespace scankit {
namespace {

struct ImportName {
  std::string distribution, package;
};

std::vector<ImportName> read_import_names() {
  std::vector<ImportName> rows;
  const YAML::Node root =
      YAML::Load(std::string(scankit_knowledge_import_names, scankit_knowledge_import_names_end));
  for (const auto& row : root["names"])
    rows.push_back({row["distribution"].as<std::string>(), row["package"].as<std::string>()});
  // Distributions whose package has the same name: the row says that this is known and not guessed.
  for (const auto& row : root["same"])
    rows.push_back({row["name"].as<std::string>(), row["name"].as<std::string>()});
  return rows;
}

const std::vector<ImportName>& import_names() {
  static const std::vector<ImportName> rows = read_import_names();
  return rows;
}

}  // namespace

// The first row wins, both here and below.
std::optional<std::string> import_name_of_distribution(std::string_view distribution) {
  const auto row = std::ranges::find(import_names(), distribution, &ImportName::distribution);
  return row == import_names().end() ? std::nullopt : std::optional(row->package);
}

std::optional<std::string> distribution_of_import_name(std::string_view package) {
  const auto row = std::ranges::find(import_names(), package, &ImportName::package);
  return row == import_names().end() ? std::nullopt : std::optional(row->distribution);
}

namespace {

KnownImporters read_importers() {
  KnownImporters known;
  const YAML::Node root =
      YAML::Load(std::string(scankit_knowledge_importers, scankit_knowledge_importers_end));
  for (const auto& row : root["packages"]) known.packages.push_back(row["package"].as<std::string>());
  for (const auto& row : root["source_folders"])
    known.source_folders.push_back(row["folder"].as<std::string>());
  return known;
}

}  // namespace

const KnownImporters& known_importers() {
  static const KnownImporters known = read_importers();
  return known;
}

}  // namespace scankit

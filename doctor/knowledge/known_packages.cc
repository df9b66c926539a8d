// SPDX-License-Identifier: Apache-2.0
#include "doctor/knowledge/known_packages.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <vector>

#include "doctor/base/text.h"
#include "doctor/base/version.h"

extern "C" const char scankit_knowledge_import_names[], scankit_knowledge_import_names_end[];
extern "C" const char scankit_knowledge_importers[], scankit_knowledge_importers_end[];

extern "C" const char scankit_knowledge_built_modules[], scankit_knowledge_built_modules_end[];
extern "C" const char scankit_knowledge_neighbours[], scankit_knowledge_neighbours_end[];
extern "C" const char scankit_knowledge_signatures[], scankit_knowledge_signatures_end[];
extern "C" const char scankit_knowledge_system_libraries[], scankit_knowledge_system_libraries_end[];
extern "C" const char scankit_knowledge_python_parts[], scankit_knowledge_python_parts_end[];

namespace scankit::knowledge {
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

namespace {

struct SignatureRow {
  std::string callee, distribution;
  Version from, below;  // [from, below)
  unsigned arguments;
};

std::vector<SignatureRow> read_signatures() {
  std::vector<SignatureRow> rows;
  const YAML::Node root =
      YAML::Load(std::string(scankit_knowledge_signatures, scankit_knowledge_signatures_end));
  // A row with a damaged version is dropped: it could match the wrong release.
  for (const auto& row : root["functions"]) {
    const auto from = Version::parse(row["from"].as<std::string>());
    const auto below = Version::parse(row["below"].as<std::string>());
    if (from && below)
      rows.push_back({row["module"].as<std::string>() + "." + row["function"].as<std::string>(),
                      row["distribution"].as<std::string>(), *from, *below, row["arguments"].as<unsigned>()});
  }
  return rows;
}

const std::vector<SignatureRow>& signatures() {
  static const std::vector<SignatureRow> rows = read_signatures();
  return rows;
}

}  // namespace

std::string signature_distribution(const std::string& callee) {
  for (const SignatureRow& row : signatures())
    if (row.callee == callee) return row.distribution;
  return {};
}

std::optional<KnownSignature> known_signature(const std::string& callee, const std::string& version) {
  const auto installed = Version::parse(version);
  // A pre-release may have either signature.
  if (!installed || installed->is_prerelease()) return std::nullopt;
  for (const SignatureRow& row : signatures())
    if (row.callee == callee && row.from <= *installed && *installed < row.below)
      return KnownSignature{row.distribution, row.arguments};
  return std::nullopt;
}

namespace {

std::vector<CompiledModule> read_built_modules() {
  std::vector<CompiledModule> rows;
  const YAML::Node root =
      YAML::Load(std::string(scankit_knowledge_built_modules, scankit_knowledge_built_modules_end));
  for (const auto& row : root["modules"])
    rows.push_back({row["module"].as<std::string>(), row["project"].as<std::string>()});
  return rows;
}

}  // namespace

const std::vector<CompiledModule>& built_modules() {
  static const std::vector<CompiledModule> rows = read_built_modules();
  return rows;
}

namespace {

std::vector<NeighbourPair> read_pairs() {
  std::vector<NeighbourPair> rows;
  const YAML::Node root =
      YAML::Load(std::string(scankit_knowledge_neighbours, scankit_knowledge_neighbours_end));
  for (const auto& row : root["pairs"])
    rows.push_back({row["package"].as<std::string>(), row["releases"].as<std::string>(),
                    row["with"].as<std::string>(), row["takes"].as<std::string>()});
  return rows;
}

}  // namespace

const std::vector<NeighbourPair>& neighbour_pairs() {
  static const std::vector<NeighbourPair> rows = read_pairs();
  return rows;
}

std::vector<std::string> limits_beside(const std::string& package, const std::string& version) {
  std::vector<std::string> limits;
  for (const NeighbourPair& pair : neighbour_pairs())
    if (pair.package == package && pair.with != "torch" && meets(version, pair.releases))
      limits.push_back(pair.with + pair.takes);
  return limits;
}

// Later releases ask for a newer torch, so that the first one that does not take it is the limit.
std::string limit_for_torch(const std::string& package, const std::string& torch) {
  for (const NeighbourPair& pair : neighbour_pairs())
    if (pair.package == package && pair.with == "torch" && pair.releases.starts_with(">=") &&
        !meets(torch, pair.takes))
      return package + "<" + pair.releases.substr(2, pair.releases.find(',') - 2);
  return "";
}

namespace {

std::map<std::string, std::string, std::less<>> read_system_libraries() {
  std::map<std::string, std::string, std::less<>> packages;
  const YAML::Node root =
      YAML::Load(std::string(scankit_knowledge_system_libraries, scankit_knowledge_system_libraries_end));
  for (const auto& row : root["libraries"])
    packages.emplace(row["soname"].as<std::string>(), row["debian"].as<std::string>());
  return packages;
}

}  // namespace

bool is_model_package(std::string_view name) {
  const std::string normalized = normalized_name(name);
  return normalized == "mamba-ssm" || normalized == "causal-conv1d";
}

namespace {

std::map<std::string, PartOfPython, std::less<>> read_python_parts() {
  std::map<std::string, PartOfPython, std::less<>> parts;
  const YAML::Node root =
      YAML::Load(std::string(scankit_knowledge_python_parts, scankit_knowledge_python_parts_end));
  for (const auto& row : root["parts"])
    for (const auto& module : row["modules"])
      parts.emplace(module.as<std::string>(),
                    PartOfPython{row["debian"].as<std::string>(""), row["needs"].as<std::string>("")});
  return parts;
}

}  // namespace

std::optional<PartOfPython> optional_part_of_python(std::string_view module) {
  static const auto parts = read_python_parts();
  const auto row = parts.find(module);
  return row == parts.end() ? std::nullopt : std::optional(row->second);
}

std::optional<std::string> debian_package_of(std::string_view soname) {
  static const auto packages = read_system_libraries();
  const auto row = packages.find(soname);
  return row == packages.end() ? std::nullopt : std::optional(row->second);
}

}  // namespace scankit::knowledge

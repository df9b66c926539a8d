// SPDX-License-Identifier: Apache-2.0
#include "doctor/knowledge/nvcc_archs.h"

#include <yaml-cpp/yaml.h>

#include <map>

#include "doctor/base/version.h"

extern "C" const char scankit_knowledge_nvcc_archs[], scankit_knowledge_nvcc_archs_end[];

namespace scankit {
namespace {

struct Range {
  std::optional<Version> first, last;
};

std::map<std::string, Range, std::less<>> read_arch_ranges() {
  std::map<std::string, Range, std::less<>> rows;
  const std::string text(scankit_knowledge_nvcc_archs, scankit_knowledge_nvcc_archs_end);
  for (const auto& row : YAML::Load(text)) {
    Range& range = rows[row["sm"].as<std::string>()];
    if (row["first"]) range.first = Version::parse(row["first"].as<std::string>());
    if (row["last"]) range.last = Version::parse(row["last"].as<std::string>());
  }
  return rows;
}

}  // namespace

std::optional<bool> nvcc_knows_arch(std::string_view release, std::string_view arch) {
  static const auto rows = read_arch_ranges();
  const auto row = rows.find(arch);
  const auto version = Version::parse(release);
  if (row == rows.end() || !version) return std::nullopt;
  if (row->second.first && *version < *row->second.first) return false;
  return !(row->second.last && *version > *row->second.last);
}

}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
#include "doctor/knowledge/gpus.h"

#include <yaml-cpp/yaml.h>

#include <charconv>
#include <map>
#include <vector>

#include "doctor/base/version.h"

extern "C" const char scankit_knowledge_gpus[], scankit_knowledge_gpus_end[];
extern "C" const char scankit_knowledge_nvcc_archs[], scankit_knowledge_nvcc_archs_end[];

namespace scankit {
namespace {

struct GpuRow {
  unsigned first, last;  // PCI device ids, both inclusive
  KnownGpu gpu;
};

// ~0u for a text that is no number: no row of the table reaches so far.
unsigned hex(std::string_view text) {
  unsigned value = 0;
  const auto end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value, 16);
  return parsed.ec == std::errc() && parsed.ptr == end ? value : ~0u;
}

std::vector<GpuRow> read_gpus() {
  std::vector<GpuRow> rows;
  const std::string text(scankit_knowledge_gpus, scankit_knowledge_gpus_end);
  for (const auto& row : YAML::Load(text))
    rows.push_back({hex(row["first"].as<std::string>()),
                    hex(row["last"].as<std::string>()),
                    {row["sm"].as<std::string>(), row["chip"].as<std::string>()}});
  return rows;
}

}  // namespace

std::optional<KnownGpu> known_gpu(std::string_view device_id) {
  static const std::vector<GpuRow> rows = read_gpus();
  const unsigned id = hex(device_id);
  for (const GpuRow& row : rows)
    if (row.first <= id && id <= row.last) return row.gpu;
  return std::nullopt;
}

namespace {

struct Range {
  std::optional<Version> first, last;  // CUDA releases, both inclusive; unset: open
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

// SPDX-License-Identifier: Apache-2.0
#include "doctor/knowledge/cuda_support.h"

#include <yaml-cpp/yaml.h>

#include <charconv>
#include <map>
#include <string>
#include <vector>

#include "doctor/base/version.h"

extern "C" const char scankit_knowledge_gpus[], scankit_knowledge_gpus_end[];
extern "C" const char scankit_knowledge_tegra[], scankit_knowledge_tegra_end[];
extern "C" const char scankit_knowledge_nvcc_archs[], scankit_knowledge_nvcc_archs_end[];

// Made by scankit_embed (CMakeLists.txt).
extern "C" const char scankit_knowledge_drivers[], scankit_knowledge_drivers_end[];

namespace scankit::knowledge {
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

static YAML::Node rows_of_tegra(const char* table) {
  return YAML::Load(std::string(scankit_knowledge_tegra, scankit_knowledge_tegra_end))[table];
}

std::optional<KnownGpu> known_tegra(std::string_view compatible) {
  for (const auto& row : rows_of_tegra("chips"))
    if (row["compatible"].as<std::string>() == compatible)
      return KnownGpu{row["sm"].as<std::string>(), row["chip"].as<std::string>()};
  return std::nullopt;
}

std::string cuda_of_jetson(std::string_view release) {
  const auto here = Version::parse(release);
  std::string cuda;
  unsigned long newest_major = 0;
  for (const auto& row : rows_of_tegra("releases")) {
    const auto first = Version::parse(row["first"].as<std::string>());
    if (!here || !first) return "";
    newest_major = first->part(0);
    if (*here >= *first) cuda = row["cuda"].as<std::string>();
  }
  return here && here->part(0) <= newest_major ? cuda : "";
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

const Range* range_of(std::string_view arch) {
  static const auto rows = read_arch_ranges();
  const auto row = rows.find(arch);
  return row == rows.end() ? nullptr : &row->second;
}

}  // namespace

std::optional<bool> nvcc_knows_arch(std::string_view release, std::string_view arch) {
  const Range* range = range_of(arch);
  const auto version = Version::parse(release);
  if (range == nullptr || !version) return std::nullopt;
  if (range->first && *version < *range->first) return false;
  return !(range->last && *version > *range->last);
}

namespace {

// Rows of drivers.yaml, in its order. The releases and the cubin ABIs ascend: the look-ups take the last row
// that applies.
struct Release {
  Version cuda, driver;
  unsigned branch;
};
struct Major {
  unsigned major;
  Version driver;
};
struct Named {
  std::string name;
  Version version;
};
struct CubinAbi {
  unsigned abi, sm;
  CubinAbiDrivers drivers;
};
struct Table {
  std::vector<Release> releases;
  std::vector<Major> majors;
  std::vector<Named> ptx, packing;
  std::vector<CubinAbi> cubin_abis;
};

// A version that does not parse becomes 0, which no driver is older than.
Version version_of(const YAML::Node& node) {
  return Version::parse(node.as<std::string>()).value_or(Version{});
}

Table read_driver_table() {
  Table table;
  const YAML::Node root = YAML::Load(std::string(scankit_knowledge_drivers, scankit_knowledge_drivers_end));
  for (const auto& row : root["releases"])
    table.releases.push_back(
        {version_of(row["cuda"]), version_of(row["driver"]), row["branch"].as<unsigned>()});
  for (const auto& row : root["majors"])
    table.majors.push_back({row["major"].as<unsigned>(), version_of(row["driver"])});
  for (const auto& row : root["ptx"])
    table.ptx.push_back({row["isa"].as<std::string>(), version_of(row["cuda"])});
  for (const auto& row : root["packing"])
    table.packing.push_back({row["name"].as<std::string>(), version_of(row["driver"])});
  for (const auto& row : root["cubin_abis"]) {
    CubinAbiDrivers drivers{version_of(row["driver"]), row["driver"].as<std::string>(), std::nullopt};
    if (row["refused_below"]) drivers.refused_below = version_of(row["refused_below"]);
    table.cubin_abis.push_back({row["abi"].as<unsigned>(), row["sm"].as<unsigned>(), drivers});
  }
  return table;
}

const Table& driver_table() {
  static const Table rows = read_driver_table();
  return rows;
}

std::optional<Version> named(const std::vector<Named>& rows, std::string_view name) {
  for (const Named& row : rows)
    if (row.name == name) return row.version;
  return std::nullopt;
}

}  // namespace

std::optional<DriverCuda> cuda_of_driver(const Version& driver) {
  std::optional<DriverCuda> found;
  // The branch is the first number of a driver's version.
  for (const Release& row : driver_table().releases)
    if (row.branch <= driver.part(0)) found = DriverCuda{row.cuda, row.branch < driver.part(0)};
  // A branch between two rows belongs to the earlier one; only behind the last row may it know more.
  if (found && found->cuda != driver_table().releases.back().cuda) found->or_newer = false;
  // The branches that follow a row's own in the Windows numbering (580, 581, 582) are no new ones.
  if (found && found->or_newer && driver.part(0) < driver_table().releases.back().branch + 5)
    found->or_newer = false;
  return found;
}

std::optional<Version> minimum_driver(const Version& cuda) {
  // Minor-version compatibility begins with CUDA 11. Before that every release needs its own driver.
  for (const Major& row : driver_table().majors)
    if (row.major == cuda.part(0)) return row.driver;
  for (const Release& row : driver_table().releases)
    if (cuda.part(0) < 11 && row.cuda.part(0) == cuda.part(0) && row.cuda.part(1) == cuda.part(1))
      return row.driver;
  return std::nullopt;
}

std::optional<Version> driver_of_first_cuda(unsigned sm) {
  const Range* range = range_of(std::to_string(sm));
  if (range == nullptr || !range->first) return std::nullopt;
  for (const Release& row : driver_table().releases)
    if (row.cuda == *range->first) return row.driver;
  return std::nullopt;
}

std::optional<Version> cuda_of_ptx(std::string_view isa) { return named(driver_table().ptx, isa); }

std::optional<CubinAbiDrivers> drivers_of_cubin_abi(unsigned abi, unsigned sm) {
  std::optional<CubinAbiDrivers> found;
  // The rows of one ABI version ascend by chip: from sm_100 on older drivers read version 8 as well.
  for (const CubinAbi& row : driver_table().cubin_abis)
    if (row.abi == abi && row.sm <= sm) found = row.drivers;
  return found;
}

std::optional<Version> driver_that_unpacks(std::string_view packing) {
  return named(driver_table().packing, packing);
}

}  // namespace scankit::knowledge

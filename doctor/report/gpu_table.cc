// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <optional>

#include "doctor/base/say.h"
#include "doctor/report/text.h"

namespace scankit::report {
namespace {

enum class Unit { Count, Bytes, Bits, MHz, Watt, Celsius, Switch };
struct Detail {
  const char* key;
  std::string_view label;
  Unit unit;
};
constexpr Detail kDetails[] = {
#define DETAIL(key, label, unit) {key, sayable(label), Unit::unit},
#include "doctor/model/gpu_details.def"
#undef DETAIL
};

std::optional<std::int64_t> known(const Gpu& gpu, const char* key) {
  const auto found = gpu.details.find(key);
  return found == gpu.details.end() ? std::nullopt : std::optional(found->second);
}
bool is(const Gpu& gpu, const char* key, std::int64_t value) { return known(gpu, key) == value; }

std::string in_unit(std::int64_t value, Unit unit) {
  switch (unit) {
    case Unit::Bytes:
      return value >= 1 << 20 && value % (1 << 20) == 0 ? fmt::format("{} MiB", value >> 20)
                                                        : fmt::format("{} KiB", value >> 10);
    case Unit::Bits:
      return fmt::format("{} bit", value);
    case Unit::MHz:
      return fmt::format("{} MHz", value);
    case Unit::Watt:
      return fmt::format("{} W", value);
    case Unit::Celsius:
      return fmt::format(
          "{} \xC2\xB0"
          "C",
          value);
    case Unit::Switch:
      return value == 0 ? say("off") : say("on");
    case Unit::Count:
      break;
  }
  return std::to_string(value);
}

// Double data rate: two transfers for each cycle of the clock that NVML and the driver tell.
std::optional<double> bandwidth(const Gpu& gpu) {
  const auto bus = known(gpu, "memory_bus"), clock = known(gpu, "memory_clock_max");
  if (!bus || !clock || *bus == 0 || *clock == 0) return std::nullopt;
  return static_cast<double>(*bus) / 8 * static_cast<double>(*clock) * 2 * 1e6;  // bytes a second
}

// A value with what belongs to it and is no row of its own: the most that is possible, the limit, how many.
std::string value_in_words(const Gpu& gpu, const Detail& detail, std::int64_t number) {
  const std::string key = detail.key, value = in_unit(number, detail.unit);
  const auto other = [&](const std::string& name) { return known(gpu, name.c_str()); };
  if (const auto most = other(key + "_max"); most && key != "pcie_generation" && key != "pcie_width")
    return say("{}, at most {} MHz", value, *most);
  if (const auto most = other(key + "_max")) return say("{}, at most {}", value, *most);
  if (const auto rate = bandwidth(gpu); rate && key == "memory_bus")
    return say("{}, {:.0f} GB/s", value, *rate / 1e9);
  if (const auto limit = other("power_limit"); limit && key == "power")
    return say("{}, limit {} W", value, *limit);
  if (const auto limit = other("temperature_slowdown"); limit && key == "temperature")
    return say("{}, slows down at {} °C", value, *limit);
  if (const auto active = other("nvlinks_active"); active && key == "nvlinks")
    return say("{}, {} active", value, *active);
  return value;
}

// nvml.h, nvmlClocksThrottleReasons*. Idle clocks and the limit of power under load are as they should be.
constexpr std::int64_t kSlowdownByHardware = 0x8, kThermal = 0x20 | 0x40, kPowerBrake = 0x80;

}  // namespace

std::vector<GpuRow> gpu_rows(const Gpu& gpu) {
  std::vector<GpuRow> rows;
  if (gpu.details.empty()) return rows;
  if (gpu.memory > 0) rows.push_back({say("memory"), fmt::format("{} MiB", gpu.memory >> 20)});
  for (const Detail& detail : kDetails)
    if (const auto value = known(gpu, detail.key); value && !detail.label.empty())
      rows.push_back({said(detail.label), value_in_words(gpu, detail, *value)});
  return rows;
}

std::vector<std::string> unusual_of(const Gpu& gpu) {
  std::vector<std::string> lines;
  const std::int64_t limited = known(gpu, "clocks_limited_by").value_or(0);
  const auto lanes = known(gpu, "pcie_width"), most = known(gpu, "pcie_width_max");
  if (is(gpu, "compute_mode", 2))
    lines.push_back(
        say("its compute mode is prohibited: no CUDA program can use it (nvidia-smi -c DEFAULT)"));
  if (is(gpu, "compute_mode", 1) || is(gpu, "compute_mode", 3))
    lines.push_back(
        say("its compute mode is exclusive: a second process that uses it fails (nvidia-smi -c DEFAULT)"));
  if (is(gpu, "mig", 1))
    lines.push_back(
        say("it is divided into MIG instances: a process sees only one of them, by its UUID in "
            "CUDA_VISIBLE_DEVICES (nvidia-smi -L lists them)"));
  if (const auto errors = known(gpu, "ecc_uncorrected"); errors.value_or(0) > 0)
    lines.push_back(say_n(static_cast<std::size_t>(*errors),
                          "{} memory error could not be corrected in its life: results of that time are "
                          "wrong or programs failed",
                          "{} memory errors could not be corrected in its life: results of that time are "
                          "wrong or programs failed",
                          *errors));
  if (is(gpu, "remapping_failed", 1))
    lines.push_back(say("it has no spare memory rows left: replace it"));
  else if (is(gpu, "remapping_pending", 1))
    lines.push_back(say("damaged memory rows wait to be remapped: reset it or restart the machine"));
  if ((limited & kThermal) != 0) lines.push_back(say("it is too hot and runs at a lower clock"));
  if ((limited & (kSlowdownByHardware | kPowerBrake)) != 0 && (limited & kThermal) == 0)
    lines.push_back(say("its hardware lowers the clock: too little power or too hot"));
  if (lanes && most && *lanes < *most)
    lines.push_back(
        say("PCIe runs with {} of {} lanes: copies between host and GPU are slow", *lanes, *most));
  const auto limit = known(gpu, "power_limit"), usual = known(gpu, "power_limit_default");
  if (limit && usual && *limit < *usual)
    lines.push_back(say("its power is limited to {} W of {} W: it computes slower", *limit, *usual));
  return lines;
}

}  // namespace scankit::report

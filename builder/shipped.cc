// SPDX-License-Identifier: Apache-2.0
#include "builder/shipped.h"

#include <sstream>

extern "C" const char scankit_module_selective_scan_cuda[];
extern "C" const char scankit_module_selective_scan_cuda_end[];
extern "C" const char scankit_device_selective_scan[];
extern "C" const char scankit_device_selective_scan_end[];

namespace scankit {
namespace {

std::string_view between(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

Unit unit_of(const char* name, const char* flags) {
  Unit unit{name, {}};
  std::istringstream words(flags);
  for (std::string word; words >> word;) unit.flags.push_back(word);
  return unit;
}

}  // namespace

std::string_view shipped_host_module() {
  return between(scankit_module_selective_scan_cuda, scankit_module_selective_scan_cuda_end);
}

std::string_view shipped_device_source() {
  return between(scankit_device_selective_scan, scankit_device_selective_scan_end);
}

std::vector<Unit> shipped_units() {
  return {
#define UNIT(name, flags) unit_of(#name, flags),
#include "kernels/selective_scan/cuda/units.def"
#undef UNIT
  };
}

}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
#include "builder/module/shipped.h"

#include <sstream>

#include "doctor/base/say.h"

#define SCANKIT_EMBEDDED(symbol)  \
  extern "C" const char symbol[]; \
  extern "C" const char symbol##_end[]
SCANKIT_EMBEDDED(scankit_module_selective_scan_cuda);
SCANKIT_EMBEDDED(scankit_module_selective_scan_cuda_core);
SCANKIT_EMBEDDED(scankit_module_selective_scan_cuda_oflex);
SCANKIT_EMBEDDED(scankit_module_causal_conv1d_cuda);
SCANKIT_EMBEDDED(scankit_device_selective_scan);
SCANKIT_EMBEDDED(scankit_device_causal_conv1d);

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

std::vector<Unit> scan_units() {
  return {
#define UNIT(name, flags) unit_of(#name, flags),
#include "kernels/selective_scan/cuda/units.def"
#undef UNIT
  };
}

std::vector<Unit> conv_units() {
  return {
#define UNIT(name, flags) unit_of(#name, flags),
#include "kernels/causal_conv1d/cuda/units.def"
#undef UNIT
  };
}

ShippedModule scan_module(const char* name, const char* begin, const char* end) {
  return {name, between(begin, end), "selective_scan.cu",
          between(scankit_device_selective_scan, scankit_device_selective_scan_end), scan_units()};
}

}  // namespace

const std::vector<ShippedModule>& shipped_modules() {
  static const std::vector<ShippedModule> modules = {
      scan_module("selective_scan_cuda", scankit_module_selective_scan_cuda,
                  scankit_module_selective_scan_cuda_end),
      {"causal_conv1d_cuda",
       between(scankit_module_causal_conv1d_cuda, scankit_module_causal_conv1d_cuda_end), "causal_conv1d.cu",
       between(scankit_device_causal_conv1d, scankit_device_causal_conv1d_end), conv_units()},
      scan_module("selective_scan_cuda_core", scankit_module_selective_scan_cuda_core,
                  scankit_module_selective_scan_cuda_core_end),
      scan_module("selective_scan_cuda_oflex", scankit_module_selective_scan_cuda_oflex,
                  scankit_module_selective_scan_cuda_oflex_end)};
  return modules;
}

Result<const ShippedModule*> shipped_module(const std::string& name) {
  std::string names;
  for (const ShippedModule& module : shipped_modules()) {
    if (name.empty() || module.name == name) return &module;
    names += (names.empty() ? "" : ", ") + module.name;
  }
  return Error{Errc::InvalidArgument, say("--module {}: scankit builds {}", name, names), ""};
}

}  // namespace scankit

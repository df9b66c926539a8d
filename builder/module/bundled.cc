// SPDX-License-Identifier: Apache-2.0
#include "builder/module/bundled.h"

#include <algorithm>
#include <sstream>

#include "builder/toolchain/wheel_toolchains.h"
#include "doctor/base/say.h"

// scankit_embed() of the build puts a file's bytes between SYMBOL and SYMBOL_end.
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

// SM numbers: the oldest architecture of a release, and the last one with the older cubin ABI version.
constexpr unsigned kOldest = 60, kNewestOfOldCubinAbi = 90;

// The compiler for an architecture in a release. Up to sm_90 it is CUDA 12: its cubins have the older ABI
// version, which drivers before 580 read. Newer architectures come from the oldest CUDA 13 that knows them,
// since a driver of that release is then enough. Null if no compiler makes it.
const char* maker_of(unsigned sm) {
  for (const char* id : {"nvrtc-12.9.86", "nvrtc-13.0.88", "nvrtc-13.5.37"}) {
    const WheelToolchain& toolchain = wheel_toolchain(id);
    if (toolchain.version.starts_with("12.") && sm > kNewestOfOldCubinAbi) continue;
    if (std::find(toolchain.archs.begin(), toolchain.archs.end(), sm) != toolchain.archs.end()) return id;
  }
  return nullptr;
}

// One part for each compiler, in the order of maker_of(), and one for the PTX.
std::vector<ReleasePart> make_parts() {
  std::vector<ReleasePart> parts;
  for (const char* id : {"nvrtc-12.9.86", "nvrtc-13.0.88", "nvrtc-13.5.37"}) {
    ReleasePart part{id, {}};
    for (const unsigned sm : wheel_toolchain(id).archs) {
      const char* maker = sm >= kOldest ? maker_of(sm) : nullptr;
      if (maker != nullptr && part.toolchain == maker) part.targets.push_back({false, sm, ""});
    }
    parts.push_back(std::move(part));
  }
  // PTX for GPUs that come later. From an old NVRTC, since every driver from 530 on translates what it
  // writes (ISA 8.1). compute_80: every older GPU has a cubin, and from 80 on the kernels round to bf16
  // by an instruction.
  parts.push_back({"nvrtc-12.1.105", {{true, 80, ""}}});
  return parts;
}

}  // namespace

const std::vector<ReleasePart>& release_parts() {
  static const std::vector<ReleasePart> parts = make_parts();
  return parts;
}

namespace {

std::string_view between(const char* begin, const char* end) {
  return {begin, static_cast<std::size_t>(end - begin)};
}

// Splits the flags of a units.def line at blanks; none of them contains one.
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

BundledModule scan_module(const char* name, const char* begin, const char* end) {
  return {name, between(begin, end), "selective_scan.cu",
          between(scankit_device_selective_scan, scankit_device_selective_scan_end), scan_units()};
}

}  // namespace

const std::vector<BundledModule>& bundled_modules() {
  static const std::vector<BundledModule> modules = {
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

Result<const BundledModule*> bundled_module(const std::string& name) {
  std::string names;
  for (const BundledModule& module : bundled_modules()) {
    if (name.empty() || module.name == name) return &module;
    names += (names.empty() ? "" : ", ") + module.name;
  }
  return Error{Errc::InvalidArgument, say("--module {}: scankit builds {}", name, names), ""};
}

}  // namespace scankit

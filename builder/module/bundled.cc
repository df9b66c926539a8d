// SPDX-License-Identifier: Apache-2.0
#include "builder/module/bundled.h"

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "builder/toolchain/toolchain.h"
#include "doctor/base/say.h"

SCANKIT_EMBEDDED(scankit_module_selective_scan_cuda);
SCANKIT_EMBEDDED(scankit_module_selective_scan_cuda_core);
SCANKIT_EMBEDDED(scankit_module_selective_scan_cuda_oflex);
SCANKIT_EMBEDDED(scankit_module_causal_conv1d_cuda);
SCANKIT_EMBEDDED(scankit_device_selective_scan);
SCANKIT_EMBEDDED(scankit_device_causal_conv1d);

namespace scankit {

std::string decompress_embedded(const char* begin, const char* end) {
  // RFC 1952: the last four bytes are the length of the file, least significant byte first.
  std::uint32_t length = 0;
  if (end - begin < 18) std::abort();  // a header of 10 bytes and a trailer of 8
  for (int i = 0; i < 4; ++i)
    length |= static_cast<std::uint32_t>(static_cast<unsigned char>(end[i - 4])) << (8 * i);
  std::string file(length, '\0');
  z_stream stream{};
  if (inflateInit2(&stream, 16 + MAX_WBITS) != Z_OK) std::abort();  // 16: a gzip header
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(begin));
  stream.avail_in = static_cast<uInt>(end - begin);
  stream.next_out = reinterpret_cast<Bytef*>(file.data());
  stream.avail_out = length;
  const bool whole = inflate(&stream, Z_FINISH) == Z_STREAM_END && stream.avail_out == 0;
  inflateEnd(&stream);
  if (!whole) std::abort();
  return file;
}

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

}  // namespace

#define SCANKIT_DECOMPRESSED(symbol) decompress_embedded(symbol, symbol##_end)

const std::vector<BundledModule>& bundled_modules() {
  // The views need strings that live as long; the three modules of one kernel share its device source.
  static const std::string scan_source = SCANKIT_DECOMPRESSED(scankit_device_selective_scan);
  static const std::string conv_source = SCANKIT_DECOMPRESSED(scankit_device_causal_conv1d);
  static const std::string scan = SCANKIT_DECOMPRESSED(scankit_module_selective_scan_cuda);
  static const std::string conv = SCANKIT_DECOMPRESSED(scankit_module_causal_conv1d_cuda);
  static const std::string scan_core = SCANKIT_DECOMPRESSED(scankit_module_selective_scan_cuda_core);
  static const std::string scan_oflex = SCANKIT_DECOMPRESSED(scankit_module_selective_scan_cuda_oflex);
  static const std::vector<BundledModule> modules = {
      {"selective_scan_cuda", scan, "selective_scan.cu", scan_source, scan_units()},
      {"causal_conv1d_cuda", conv, "causal_conv1d.cu", conv_source, conv_units()},
      {"selective_scan_cuda_core", scan_core, "selective_scan.cu", scan_source, scan_units()},
      {"selective_scan_cuda_oflex", scan_oflex, "selective_scan.cu", scan_source, scan_units()}};
  return modules;
}

Result<const BundledModule*> bundled_module(const std::string& name) {
  std::string names;
  for (const BundledModule& module : bundled_modules()) {
    if (name.empty() || module.name == name) return &module;
    names += (names.empty() ? "" : ", ") + module.name;
  }
  return Error{Errc::InvalidArgument, message("--module {}: scankit builds {}", name, names), ""};
}

}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "builder/module/target.h"
#include "doctor/base/result.h"

namespace scankit {

// Universal: the shipped host module. Torch: one linked with the environment's own libtorch (torch_flavor/).
enum class Flavor { Universal, Torch };

// One piece of device code: one unit (kernels/*/cuda/units.def) for one target.
struct BuiltCode {
  std::string unit;
  Target target;
  std::string bytes;   // a bare cubin, or PTX text with its closing NUL, as NVRTC gives it
  std::string sha256;  // of bytes
  bool from_cache = false;
  std::string compiler;  // the CUDA release that made it: "12.9", "13.0.88"
};

// What write_fatbin() makes: the container's bytes, and where the images are in them.
struct Fatbin {
  std::string bytes;
  std::vector<std::uint64_t> payloads;  // where each image's payload starts in `bytes`, in the order given
};

// One container with every image uncompressed, for cuobjdump and our doctor. The module does not go through
// it: it picks the payloads by its own index (ARCHITECTURE.md, decision 8), so that no driver has to unpack
// anything. Errc::Malformed if an image is not what its target says.
Result<Fatbin> write_fatbin(const std::vector<BuiltCode>& images);

}  // namespace scankit

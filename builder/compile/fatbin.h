// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "builder/compile/image.h"
#include "doctor/base/result.h"

namespace scankit {

struct Fatbin {
  std::string bytes;
  std::vector<std::uint64_t> payloads;  // where each image's payload starts in `bytes`, in the order given
};

// One container holding every image raw: what cuobjdump and our doctor read. The module does not go through
// it; it picks the payloads themselves (ARCHITECTURE.md, decision 8), so that no driver's idea of compression
// matters.
Result<Fatbin> write_fatbin(const std::vector<BuiltCode>& images);

}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
// libFuzzer's entry for one target: SCANKIT_FUZZ_TARGET is its name, given by CMake.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "ci/fuzz/targets.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const scankit::fuzz::Target* target = scankit::fuzz::find_target(SCANKIT_FUZZ_TARGET);
  if (target == nullptr) std::abort();
  target->read({reinterpret_cast<const char*>(data), size});
  return 0;
}

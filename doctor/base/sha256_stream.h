// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "doctor/base/sha256.h"

namespace scankit {

// SHA-256 at the rate of a disk: by the processor's own instructions where it has them, which is five times
// as fast. sha256.h is for what may hold no such code.
class Sha256Stream {
 public:
  Sha256Stream();
  void update(const void* data, std::size_t length);
  std::string hex();  // lower-case; the object is spent afterwards

 private:
  bool native_;
  Sha256 portable_;
  std::uint32_t state_[8];
  unsigned char block_[64];
  std::size_t filled_ = 0;
  std::uint64_t total_ = 0;
};

}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "doctor/base/sha256.h"

namespace scankit {

// SHA-256 for large files. It uses the CPU's SHA instructions where they exist, which is about five
// times as fast, and falls back to Sha256. Code that must not contain such instructions includes
// sha256.h instead.
class Sha256Stream {
 public:
  Sha256Stream();
  void update(const void* data, std::size_t length);
  std::string hex();  // lower-case; the object is spent afterwards

 private:
  // Only one set of members is in use: `portable_` where native_ is false, the other four
  // where it is true.
  bool native_;
  Sha256 portable_;
  std::uint32_t state_[8];
  unsigned char block_[64];
  // Bytes in block_, always fewer than 64 between two calls.
  std::size_t filled_ = 0;
  // Bytes of the message so far.
  std::uint64_t total_ = 0;
};

}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stddef.h>
#include <stdint.h>

#include <cstddef>
#include <cstdint>
#include <string>

// SHA-256 (FIPS 180-4) with no allocation, exception or C++ runtime: the universal module, which links none
// of them, checks its device images with the same code that the builder hashed them with.
namespace scankit {

// The constants of FIPS 180-4, 4.2.2 and 5.3.3. Aligned for who reads them four at a time.
alignas(16) inline constexpr uint32_t kSha256Rounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
inline constexpr uint32_t kSha256Start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

class Sha256 {
 public:
  Sha256() {
    for (int i = 0; i < 8; ++i) state_[i] = kSha256Start[i];
  }

  void update(const void* data, size_t length) {
    const auto* bytes = static_cast<const unsigned char*>(data);
    total_ += length;
    while (length > 0) {
      const size_t room = sizeof(block_) - filled_;
      const size_t take = length < room ? length : room;
      for (size_t i = 0; i < take; ++i) block_[filled_ + i] = bytes[i];
      filled_ += take;
      bytes += take;
      length -= take;
      if (filled_ == sizeof(block_)) compress();
    }
  }

  // Writes the 32-byte digest; the object is spent afterwards.
  void finish(unsigned char digest[32]) {
    const uint64_t bits = total_ * 8;
    const unsigned char one = 0x80, zero = 0;
    update(&one, 1);
    while (filled_ != 56) update(&zero, 1);
    unsigned char length[8];
    for (int i = 0; i < 8; ++i) length[i] = static_cast<unsigned char>(bits >> (56 - 8 * i));
    update(length, 8);
    for (int i = 0; i < 32; ++i) digest[i] = static_cast<unsigned char>(state_[i / 4] >> (24 - 8 * (i % 4)));
  }

 private:
  static uint32_t rotate(uint32_t x, int n) { return (x >> n) | (x << (32 - n)); }

  void compress() {
    uint32_t w[64];
    for (int i = 0; i < 16; ++i)
      w[i] = uint32_t{block_[4 * i]} << 24 | uint32_t{block_[4 * i + 1]} << 16 |
             uint32_t{block_[4 * i + 2]} << 8 | uint32_t{block_[4 * i + 3]};
    for (int i = 16; i < 64; ++i) {
      const uint32_t s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ (w[i - 15] >> 3);
      const uint32_t s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ (w[i - 2] >> 10);
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    uint32_t v[8];
    for (int i = 0; i < 8; ++i) v[i] = state_[i];
    for (int i = 0; i < 64; ++i) {
      const uint32_t s1 = rotate(v[4], 6) ^ rotate(v[4], 11) ^ rotate(v[4], 25);
      const uint32_t t1 = v[7] + s1 + ((v[4] & v[5]) ^ (~v[4] & v[6])) + kSha256Rounds[i] + w[i];
      const uint32_t s0 = rotate(v[0], 2) ^ rotate(v[0], 13) ^ rotate(v[0], 22);
      const uint32_t t2 = s0 + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
      for (int j = 7; j > 0; --j) v[j] = v[j - 1];
      v[4] += t1;
      v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; ++i) state_[i] += v[i];
    filled_ = 0;
  }

  uint32_t state_[8] = {};
  unsigned char block_[64] = {};
  size_t filled_ = 0;
  uint64_t total_ = 0;
};

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

// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/sha256.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace scankit {
namespace {

#if defined(__x86_64__)

// Whether the CPU and this code agree on the instructions: SHA, and the byte shuffles (SSSE3,
// SSE4.1) that native_blocks() needs around them. Leaf 7 of CPUID reports SHA; CPUs from before that
// leaf answer 0.
bool processor_has_sha() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return false;
  const bool shuffles = (c & bit_SSSE3) != 0 && (c & bit_SSE4_1) != 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  return shuffles && (b & bit_SHA) != 0;
}

// Runs the compression function over `count` blocks of 64 bytes. SHA256RNDS2 wants the eight words of the
// state in two registers, as ABEF and CDGH (Intel's manual, volume 2), and performs two rounds. `state`
// keeps the usual order A to H, so the words are rearranged on entry and on exit.
__attribute__((target("sha,ssse3,sse4.1"))) void native_blocks(std::uint32_t (&state)[8],
                                                               const unsigned char* data, std::size_t count) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0b, 0x0405060700010203);
  const auto* words = reinterpret_cast<const __m128i*>(state);
  __m128i low = _mm_shuffle_epi32(_mm_loadu_si128(words), 0xb1);
  __m128i high = _mm_shuffle_epi32(_mm_loadu_si128(words + 1), 0x1b);
  __m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xf0);
  for (; count > 0; --count, data += 64) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4];
    // SHA-256 reads its input as big-endian words.
    for (int i = 0; i < 4; ++i)
      w[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(data) + i), swap);
    // Each step performs four rounds and then replaces the four oldest words of the schedule with
    // the next four. The last four steps compute words that no round uses; leaving them out would
    // only add a branch.
    for (unsigned i = 0; i < 16; ++i) {
      __m128i& now = w[i % 4];
      const __m128i next = w[(i + 1) % 4], third = w[(i + 2) % 4], last = w[(i + 3) % 4];
      const __m128i sum = _mm_add_epi32(
          now, _mm_load_si128(reinterpret_cast<const __m128i*>(kSha256Rounds + std::size_t{4} * i)));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, sum);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(sum, 0x0e));
      const __m128i mixed = _mm_add_epi32(_mm_sha256msg1_epu32(now, next), _mm_alignr_epi8(last, third, 4));
      now = _mm_sha256msg2_epu32(mixed, last);
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  low = _mm_shuffle_epi32(abef, 0x1b);
  high = _mm_shuffle_epi32(cdgh, 0xb1);
  auto* out = reinterpret_cast<__m128i*>(state);
  _mm_storeu_si128(out, _mm_blend_epi16(low, high, 0xf0));
  _mm_storeu_si128(out + 1, _mm_alignr_epi8(high, low, 8));
}

#else

// update() and hex() never call this one: without the instructions, Sha256 from sha256.h does the work.
bool processor_has_sha() { return false; }
void native_blocks(std::uint32_t (&)[8], const unsigned char*, std::size_t) {}

#endif

std::string hex_of(const unsigned char (&digest)[32]) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace

// Asks the CPU once for each process. A function-local static is initialised in a thread-safe way.
Sha256Stream::Sha256Stream() {
  static const bool has = processor_has_sha();
  native_ = has;
  std::copy(std::begin(kSha256Start), std::end(kSha256Start), state_);
  std::fill(std::begin(block_), std::end(block_), static_cast<unsigned char>(0));
}

void Sha256Stream::update(const void* data, std::size_t length) {
  if (!native_) return portable_.update(data, length);
  const auto* bytes = static_cast<const unsigned char*>(data);
  total_ += length;
  if (filled_ > 0) {
    const std::size_t take = std::min(length, sizeof block_ - filled_);
    std::memcpy(block_ + filled_, bytes, take);
    filled_ += take;
    bytes += take;
    length -= take;
    if (filled_ < sizeof block_) return;
    native_blocks(state_, block_, 1);
    filled_ = 0;
  }
  native_blocks(state_, bytes, length / sizeof block_);
  bytes += length / sizeof block_ * sizeof block_;
  filled_ = length % sizeof block_;
  if (filled_ > 0) std::memcpy(block_, bytes, filled_);
}

std::string Sha256Stream::hex() {
  unsigned char digest[32];
  if (!native_) {
    portable_.finish(digest);
    return hex_of(digest);
  }
  // The padding of FIPS 180-4, 5.1.1: a one bit, zeros up to 8 bytes before the end of a block, and the
  // length of the message in bits as a big-endian number. At most 63 zeros are needed, hence 72 bytes.
  const std::uint64_t bits = total_ * 8;
  unsigned char end[72] = {0x80};
  const std::size_t zeros = (filled_ < 56 ? 55 : 119) - filled_;
  for (unsigned i = 0; i < 8; ++i) end[1 + zeros + i] = static_cast<unsigned char>(bits >> (56 - 8 * i));
  update(end, zeros + 9);
  for (unsigned i = 0; i < 32; ++i)
    digest[i] = static_cast<unsigned char>(state_[i / 4] >> (24 - 8 * (i % 4)));
  return hex_of(digest);
}

}  // namespace scankit

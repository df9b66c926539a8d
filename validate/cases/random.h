// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

// Numbers by counter: value n of a stream is a pure function of (seed, n), so that C++ and the Python harness
// make the same tensors, element by element and in any order. No std:: distribution: those differ between
// standard libraries.
namespace scankit::validate {

inline constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15u;  // splitmix64 (Steele, Lea, Flood 2014)

// splitmix64's output function: a bijection that spreads every bit of z over the result.
inline std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
// Value n of the stream; harness/tensors.py has the same formula over tensors.
inline std::uint64_t draw(std::uint64_t seed, std::uint64_t n) { return mix(seed + (n + 1) * kGolden); }
// In [0, 1), a multiple of 2^-53: exact in both languages.
inline double unit(std::uint64_t seed, std::uint64_t n) {
  return static_cast<double>(draw(seed, n) >> 11) * 0x1p-53;
}

// A stream that is read in order, for choosing shapes.
class Stream {
 public:
  explicit Stream(std::uint64_t seed) : seed_(seed) {}
  std::uint64_t next() { return draw(seed_, position_++); }
  int below(int bound) { return static_cast<int>(next() % static_cast<std::uint64_t>(bound)); }
  bool chance(int percent) { return below(100) < percent; }
  template <class T, std::size_t N>
  T pick(const T (&choices)[N]) {
    return choices[below(static_cast<int>(N))];
  }

 private:
  std::uint64_t seed_;
  std::uint64_t position_ = 0;
};

}  // namespace scankit::validate

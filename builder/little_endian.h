// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>

namespace scankit {

template <class T>
void append_little_endian(std::string& out, T value) {
  static_assert(std::is_unsigned_v<T>);
  for (std::size_t i = 0; i < sizeof(T); ++i) out += static_cast<char>((value >> (8 * i)) & 0xff);
}

inline void pad_to(std::string& out, std::size_t alignment) {
  out.append((alignment - out.size() % alignment) % alignment, '\0');
}

}  // namespace scankit

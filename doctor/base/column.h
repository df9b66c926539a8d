// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <string>

namespace scankit {

// Filled up to its column with spaces, at least one; letters are counted, not bytes.
inline std::string in_column(std::string text, std::size_t width) {
  const auto letters = static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; }));
  text.append(letters < width ? width - letters : 1, ' ');
  return text;
}

}  // namespace scankit

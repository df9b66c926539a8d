// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

namespace scankit {

// Length of the well-formed UTF-8 sequence at `at` (RFC 3629: no overlong forms, no surrogates), 0 where
// there is none.
inline std::size_t utf8_sequence_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
  };
  const auto follows = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xBF) {
    return byte(i) >= low && byte(i) <= high;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return follows(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF)
    return follows(1, lead == 0xE0 ? 0xA0 : 0x80, lead == 0xED ? 0x9F : 0xBF) && follows(2) ? 3 : 0;
  if (lead >= 0xF0 && lead <= 0xF4)
    return follows(1, lead == 0xF0 ? 0x90 : 0x80, lead == 0xF4 ? 0x8F : 0xBF) && follows(2) && follows(3) ? 4
                                                                                                          : 0;
  return 0;
}

// U+0080..U+009F act as escapes on some terminals; U+202A..U+202E and U+2066..U+2069 reorder what the user
// reads; U+2028 and U+2029 end a line of YAML 1.1, JavaScript and many editors. `sequence` is one well-formed
// sequence.
inline bool acts_on_terminal(std::string_view sequence) {
  if (sequence.size() == 2) return sequence[0] == '\xC2' && static_cast<unsigned char>(sequence[1]) < 0xA0;
  if (sequence.size() != 3 || sequence[0] != '\xE2') return false;
  const auto second = static_cast<unsigned char>(sequence[1]),
             third = static_cast<unsigned char>(sequence[2]);
  return (second == 0x80 && third >= 0xA8 && third <= 0xAE) ||
         (second == 0x81 && third >= 0xA6 && third <= 0xA9);
}

}  // namespace scankit

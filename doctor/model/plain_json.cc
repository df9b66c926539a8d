// SPDX-License-Identifier: Apache-2.0
#include "doctor/model/plain_json.h"

#include <fmt/core.h>

#include <algorithm>

#include "doctor/base/utf8.h"

namespace scankit {

std::string plain_json(std::string dumped) {
  const auto unusual = [](char c) { return static_cast<unsigned char>(c) >= 0x7F; };
  if (std::ranges::none_of(dumped, unusual)) return dumped;
  std::string out;
  out.reserve(dumped.size());
  for (std::size_t at = 0; at < dumped.size();) {
    const std::size_t length = std::max<std::size_t>(utf8_sequence_length(dumped, at), 1);
    const std::string_view sequence = std::string_view(dumped).substr(at, length);
    const auto byte = [&](std::size_t i) {
      return static_cast<unsigned>(static_cast<unsigned char>(sequence[i]));
    };
    if (sequence == "\x7F")
      out += "\\u007f";
    else if (!acts_on_terminal(sequence))
      out += sequence;
    else if (length == 2)
      out += fmt::format("\\u{:04x}", (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F));
    else
      out += fmt::format("\\u{:04x}", (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F));
    at += length;
  }
  return out;
}

}  // namespace scankit

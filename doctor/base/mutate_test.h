// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <random>
#include <string>

namespace scankit::test {

// `good` with one to four changes at random places: a byte for another, bytes that mean something to YAML put
// in, bytes taken out, a part of it repeated. Never empty.
inline std::string mutated(const std::string& good, std::mt19937& random) {
  static const std::string pieces = "{}[]:,-?&*!|>'\"%@`#\n \tx0.=<~\\\xC3\xFF\x01";
  std::string text = good;
  for (auto changes = 1 + random() % 4; changes > 0; --changes) {
    const std::size_t at = random() % text.size();
    const char piece = pieces[random() % pieces.size()];
    switch (random() % 4) {
      case 0:
        text[at] = piece;
        break;
      case 1:
        text.insert(at, 1 + random() % 3, piece);
        break;
      case 2:
        text.erase(at, 1 + random() % 8);
        break;
      default:
        text.insert(at, text.substr(random() % text.size(), 1 + random() % 20));
        break;
    }
    if (text.empty()) text = "x";
  }
  return text;
}

}  // namespace scankit::test

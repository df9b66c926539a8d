// SPDX-License-Identifier: Apache-2.0
#include "doctor/report/plain.h"

#include <array>

#include "doctor/base/utf8.h"

namespace scankit {
namespace {

void append_escaped(std::string& out, std::string_view bytes) {
  constexpr std::array<char, 16> kDigits{'0', '1', '2', '3', '4', '5', '6', '7',
                                         '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'};
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += "\\x";
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Whether the character at `at` makes a command for a CI runner of what is only printed: "##[", "##vso[" and
// "##teamcity[" anywhere in a line (GitHub, Azure, TeamCity), and "::name" where a line may begin (GitHub,
// which skips blanks first, and any blank is where a line may be wrapped). Broken always, not only where
// GITHUB_ACTIONS is set: that variable does not reach a container, another node or a log that a later step
// prints.
bool begins_command(std::string_view text, std::size_t at) {
  const auto letter_at = [&](std::size_t i) { return i < text.size() && is_letter(text[i]); };
  if (at == 0) return false;
  if (text[at] == ':') return text[at - 1] == ':' && (at == 1 || text[at - 2] == ' ') && letter_at(at + 1);
  if (text[at] != '#' || text[at - 1] != '#') return false;
  while (letter_at(at + 1)) ++at;
  return at + 1 < text.size() && text[at + 1] == '[';
}

std::string without_commands(std::string text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at)
    if (begins_command(text, at))
      append_escaped(out, std::string_view(text).substr(at, 1));
    else
      out += text[at];
  return out;
}

}  // namespace

std::string plain(std::string_view text, bool ascii) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_sequence_length(text, at);
    const std::string_view sequence = text.substr(at, length == 0 ? 1 : length);
    const auto first = static_cast<unsigned char>(sequence[0]);
    const bool control = sequence.size() == 1 && (first < 0x20 || first == 0x7F);
    if (sequence == "\n" || sequence == "\t")
      out += ' ';  // one line stays one line
    else if (length == 0 || control || acts_on_terminal(sequence) || (ascii && first >= 0x80))
      append_escaped(out, sequence);
    else
      out += sequence;
    at += sequence.size();
  }
  return without_commands(std::move(out));
}

}  // namespace scankit

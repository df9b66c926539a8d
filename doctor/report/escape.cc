// SPDX-License-Identifier: Apache-2.0
#include "doctor/report/escape.h"

#include <algorithm>
#include <array>

#include "doctor/base/text.h"

namespace scankit::report {
namespace {

struct Replacement {
  char from;
  std::string_view to;
};

// Replaces single characters by a table.
template <std::size_t N>
std::string replaced(std::string_view text, const std::array<Replacement, N>& table) {
  std::string out;
  for (const char c : text) {
    const auto found = std::ranges::find(table, c, &Replacement::from);
    if (found == table.end())
      out += c;
    else
      out += found->to;
  }
  return out;
}

// XML 1.0 excludes U+FFFE and U+FFFF, although they are well-formed UTF-8.
std::string without_noncharacters(std::string text) {
  for (const auto& [bytes, name] :
       {std::pair{"\xEF\xBF\xBE", "\\xef\\xbf\\xbe"}, std::pair{"\xEF\xBF\xBF", "\\xef\\xbf\\xbf"}})
    for (std::size_t at = text.find(bytes); at != std::string::npos; at = text.find(bytes, at))
      text.replace(at, 3, name);
  return text;
}

// The length of the longest run of a character.
std::size_t longest_run(std::string_view text, char wanted) {
  std::size_t longest = 0, run = 0;
  for (const char c : text) longest = std::max(longest, run = c == wanted ? run + 1 : 0);
  return longest;
}

}  // namespace

std::string prometheus_label(std::string_view text) {
  // The format has three escapes: backslash, quote and line end. plain() has removed line ends.
  constexpr std::array<Replacement, 2> kTable{{{'\\', "\\\\"}, {'"', "\\\""}}};
  return replaced(plain(text, false), kTable);
}

std::string xml_escaped(std::string_view text) {
  // &#39; and not &apos;, which HTML 4 does not know.
  constexpr std::array<Replacement, 5> kTable{
      {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}}};
  return replaced(without_noncharacters(plain(text, false)), kTable);
}

std::string markdown_escaped(std::string_view text) {
  constexpr std::array<Replacement, 14> kTable{{{'&', "&amp;"},
                                                {'<', "&lt;"},
                                                {'>', "&gt;"},
                                                {'\\', "\\\\"},
                                                {'`', "\\`"},
                                                {'*', "\\*"},
                                                {'_', "\\_"},
                                                {'[', "\\["},
                                                {']', "\\]"},
                                                {'|', "\\|"},
                                                {'~', "\\~"},
                                                {'!', "\\!"},
                                                {'$', "\\$"}}};
  // After rendering a page, GitHub turns "@name", "#1" and addresses into links, and notifies whoever has
  // that name. Backslashes and entities are gone by then. It skips code, so the character that would
  // start such a link becomes code.
  std::string out;
  const std::string clean = plain(text, false);
  for (std::size_t at = 0; at < clean.size(); ++at) {
    const std::string_view rest = std::string_view(clean).substr(at);
    const char next = rest.size() > 1 ? rest[1] : ' ';
    const bool name = rest[0] == '@' && next != ' ', number = rest[0] == '#' && next >= '0' && next <= '9';
    const bool address = rest.starts_with("://") || rest.starts_with("www.") || rest.starts_with("WWW.");
    const std::size_t length = !address ? 1 : rest[0] == ':' ? 3 : 4;
    const std::string_view word = rest.substr(0, length);
    out += name || number || address ? "<code>" + std::string(word) + "</code>" : replaced(word, kTable);
    at += length - 1;
  }
  return out;
}

std::string markdown_code(std::string_view text) {
  std::string inner = plain(text, false);
  if (inner.empty()) return "";
  const std::string fence(longest_run(inner, '`') + 1, '`');
  // The parser of tables splits a row at "|" before it looks for code. A backslash in a code span would
  // be visible, so such text becomes HTML.
  if (inner.find('|') != std::string::npos) return "<code>" + markdown_escaped(inner) + "</code>";
  // A fence of one more backtick than the longest run in the text, and spaces where a backtick is at the
  // edge (CommonMark, code spans).
  const bool pad = inner.front() == '`' || inner.back() == '`';
  return fence + (pad ? " " : "") + inner + (pad ? " " : "") + fence;
}

// The escapes of GitHub's workflow commands: "%" in a message, and in a property also what separates
// properties. Line ends need an escape as well, but plain() has removed them.
std::string github_message(std::string_view text) {
  constexpr std::array<Replacement, 1> kTable{{{'%', "%25"}}};
  return replaced(plain(text, false), kTable);
}

std::string github_property(std::string_view text) {
  constexpr std::array<Replacement, 3> kTable{{{'%', "%25"}, {':', "%3A"}, {',', "%2C"}}};
  return replaced(plain(text, false), kTable);
}

// Everything but RFC 3986's unreserved characters and "/" is percent-encoded, byte by byte.
std::string file_uri(std::string_view path) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  constexpr std::string_view kUnreserved =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/";
  std::string out = "file://";
  for (const char c : path) {
    if (kUnreserved.find(c) != std::string_view::npos) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
  return out;
}

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

// Whether the character at `at` makes a CI runner take printed text for a command: "##[", "##vso[" and
// "##teamcity[" anywhere in a line (GitHub, Azure, TeamCity), and "::name" where a line may begin.
// GitHub skips blanks before it, and a line may be wrapped at any blank. Such text is always broken up,
// not only if GITHUB_ACTIONS is set: that variable does not reach a container, another node, or a log
// that a later step prints.
bool begins_command(std::string_view text, std::size_t at) {
  const auto letter_at = [&](std::size_t i) { return i < text.size() && is_letter(text[i]); };
  if (at == 0) return false;
  if (text[at] == ':') return text[at - 1] == ':' && (at == 1 || text[at - 2] == ' ') && letter_at(at + 1);
  if (text[at] != '#' || text[at - 1] != '#') return false;
  while (letter_at(at + 1)) ++at;
  return at + 1 < text.size() && text[at + 1] == '[';
}

// Replaces one character of each command by \xNN.
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

// The commands are removed last, because the escapes above could otherwise bring two halves together.
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

}  // namespace scankit::report

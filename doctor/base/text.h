// SPDX-License-Identifier: Apache-2.0
// Text: the one place for trimming, splitting, joining, case, UTF-8, package names and quoting. Pure
// functions over bytes that may be a stranger's: none trusts its input, none depends on the locale.
#pragma once
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace scankit {

// Removes ASCII white space at both ends. The result points into `text`.
std::string_view trimmed(std::string_view text);
// Splits at '\n' and drops a '\r' before it. The views point into `text`; a final newline adds
// no empty line.
std::vector<std::string_view> lines_of(std::string_view text);
// The parts between any of `separators`. Empty parts are kept: "a::b" has three.
std::vector<std::string> split(std::string_view text, std::string_view separators);
// The same without the empty parts.
std::vector<std::string> split_nonempty(std::string_view text, std::string_view separators);
std::string join(const std::vector<std::string>& parts, std::string_view separator = ", ");
std::string lowered(std::string_view text);                    // ASCII letters alone
inline bool is_digit(char c) { return c >= '0' && c <= '9'; }  // std::isdigit is undefined for negative char
// ASCII letters, digits and '_': of a name in C or Python.
inline bool is_identifier_char(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// Length of the well-formed UTF-8 sequence at `at` (RFC 3629: no overlong forms, no surrogates), 0 where
// there is none.
std::size_t utf8_sequence_length(std::string_view text, std::size_t at);
bool is_utf8(std::string_view text);
// For messages: control bytes, and bytes that are not UTF-8, come out as \xNN.
std::string printable(std::string_view text);
// U+0080..U+009F act as escapes on some terminals; U+202A..U+202E and
// U+2066..U+2069 reorder what the user reads; U+2028 and U+2029 end a line of
// YAML 1.1, JavaScript and many editors. `sequence` is one well-formed sequence.
bool acts_on_terminal(std::string_view sequence);

// PEP 503: case and runs of "-", "_", "." do not distinguish names: "Mamba_SSM" and "mamba-ssm" are one.
std::string normalized_name(std::string_view distribution);
std::string top_package(const std::string& dotted);  // "torch" of "torch.nn"

// The word of `known` that `word` is probably a typing mistake for. Counts letters to change, add, drop
// or swap with their neighbour, ignoring case and the kind of separator; at most a third of the word's
// letters plus one. "" if no word is that near.
std::string nearest_word(std::string_view word, const std::vector<std::string>& known);

// As a POSIX shell reads it back: quoted only where needed.
std::string shell_quoted(const std::string& word);
// A command line to paste: every word of `words` quoted.
std::string shell_line(const std::vector<std::string>& words);

// "20s", "1.5m", "500ms", "2h"; a number alone means seconds. Nothing where it is none of these, zero, or
// more than a day.
std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

}  // namespace scankit

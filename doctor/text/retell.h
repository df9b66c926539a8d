// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// A snapshot holds English sentences ("no file of x is on the path"), because it goes from machine to machine
// and is compared byte by byte. A reader with another language recognises the sentence of the catalogue from
// which one was made.
namespace scankit {

// The literal parts of a key and the places between them: "{} needs {}" has "", " needs ", "".
struct SentencePattern {
  std::vector<std::string> literals, places;
  std::size_t letters = 0;  // of the literal parts: what makes a match believable
};
// Nothing where the key cannot be recognised: too few letters, two places side by side, or a format.
std::optional<SentencePattern> pattern_of(std::string_view key);

// What stands in the places of the pattern, where the text is such a sentence.
std::optional<std::vector<std::string_view>> values_in(const SentencePattern& pattern, std::string_view text);

// The translation with the values of `pattern.places` put in.
std::string with_values(std::string_view translation, const SentencePattern& pattern,
                        const std::vector<std::string>& values);

}  // namespace scankit

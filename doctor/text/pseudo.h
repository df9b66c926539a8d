// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

// For tests: a language in which every sentence of the catalogue can be told from everything else. "{} needs
// {}" becomes "[[<<{}>> \uFF4E\uFF45\uFF45\uFF44\uFF53 <<{}>>]]", with one character for each bracket and no
// ASCII letter of its own. What is left of ASCII letters in a report is a value, or was never translated.
namespace scankit {

struct PotEntry {
  std::string one, many;  // `many` is empty for a sentence without a number
};
std::vector<PotEntry> read_pot(const std::string& text);

std::string pseudo_sentence(const std::string& english);
std::string pseudo_po(const std::vector<PotEntry>& entries);

// The parts of a text that come from no sentence: values, and what stands between sentences, a line each.
// `open` is set where a bracket has no partner: a sentence was cut.
std::vector<std::string> parts_outside_sentences(const std::string& text, bool& open);

}  // namespace scankit

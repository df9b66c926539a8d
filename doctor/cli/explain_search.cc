// SPDX-License-Identifier: Apache-2.0
#include "doctor/cli/explain_search.h"

#include <algorithm>
#include <cctype>

#include "doctor/base/nearest.h"
#include "doctor/base/say.h"

namespace scankit {
namespace {

constexpr std::size_t kErrorLines = 4;

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// Words of two letters or more; punctuation around them is not part of what is looked for.
std::vector<std::string> words_of(const std::string& query) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : lower(query) + " ") {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || byte >= 0x80 || c == '_' || c == '.' || c == '+') {
      word += c;
      continue;
    }
    if (word.size() > 1) words.push_back(word);
    word.clear();
  }
  return words;
}

struct Field {
  std::string text;  // lower case, in English and in the language of the user
  int weight;
};

std::vector<Field> fields_of(const FaultClass& fault) {
  std::string slug = fault.id;
  std::ranges::replace(slug, '_', ' ');
  const auto both = [](const std::string& text) { return lower(text + "\n" + said(text)); };
  std::vector<Field> fields{{lower(fault.id + "\n" + slug), 8},
                            {both(fault.title), 6},
                            {both(fault.root_cause), 2},
                            {both(fault.fix), 1}};
  // Each counts: what all reports of a cause show is more than what one of them mentions.
  for (std::size_t i = 0; i < std::min(fault.error_lines.size(), kErrorLines); ++i)
    fields.push_back({lower(fault.error_lines[i]), 4});
  return fields;
}

struct Score {
  std::size_t words = 0;  // of the query that are found at all
  int weight = 0;
};

Score score_of(const FaultClass& fault, const std::vector<std::string>& words, const std::string& phrase) {
  Score score;
  const auto fields = fields_of(fault);
  for (const std::string& word : words) {
    int best = 0;
    for (const Field& field : fields)
      if (field.text.find(word) != std::string::npos) best += field.weight;
    if (best > 0) ++score.words;
    score.weight += best;
  }
  if (words.size() > 1)
    for (const Field& field : fields)
      if (field.text.find(phrase) != std::string::npos) score.weight += 4 * field.weight;
  return score;
}

}  // namespace

std::vector<const FaultClass*> search_causes(const std::string& query) {
  const std::vector<std::string> words = words_of(query);
  std::string phrase;
  for (const std::string& word : words) phrase += (phrase.empty() ? "" : " ") + word;
  std::vector<std::pair<Score, const FaultClass*>> found;
  std::size_t most = 0;
  for (const FaultClass& fault : fault_classes()) {
    const Score score = score_of(fault, words, phrase);
    most = std::max(most, score.words);
    if (score.words > 0) found.emplace_back(score, &fault);
  }
  // Half of the words is too little to be what was looked for.
  if (2 * most <= words.size()) return {};
  std::erase_if(found, [&](const auto& one) { return one.first.words < most; });
  std::ranges::stable_sort(found,
                           [](const auto& a, const auto& b) { return a.first.weight > b.first.weight; });
  std::vector<const FaultClass*> causes;
  for (const auto& [score, fault] : found) causes.push_back(fault);
  return causes;
}

std::string cause_hint(const std::string& wanted) {
  std::vector<std::string> known;
  for (const FaultClass& fault : fault_classes()) known.push_back(fault.id);
  const std::string near = nearest_word(wanted, known);
  return near.empty() ? say("scankit explain lists all causes") : say("did you mean {}?", near);
}

}  // namespace scankit

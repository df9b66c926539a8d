// SPDX-License-Identifier: Apache-2.0
#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <iostream>

#include "doctor/base/columns.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/cli/commands.h"
#include "doctor/knowledge/faults.h"
#include "doctor/logs/explainer.h"
#include "doctor/report/escape.h"

namespace scankit::cli {
namespace {

// Of each cause only the first error lines are searched; a long list would make a cause match
// almost any message.
constexpr std::size_t kErrorLines = 4;

// The words of a query: two bytes or more, of letters, digits and "_.+". Bytes above 0x7f count as
// letters, so that words of other languages stay whole.
std::vector<std::string> words_of(const std::string& query) {
  std::vector<std::string> words;
  std::string word;
  for (const char c : lowered(query) + " ") {
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

// A text in which words are searched.
struct Field {
  std::string text;  // lower case, in English and in the language of the user
  int weight;
};

// The weights make a word in the slug or title count more than one in the explanation.
std::vector<Field> fields_of(const knowledge::FaultClass& fault) {
  std::string slug = fault.id;
  std::ranges::replace(slug, '_', ' ');
  const auto both = [](const std::string& text) { return lowered(text + "\n" + said(text)); };
  std::vector<Field> fields{{lowered(fault.id + "\n" + slug), 8},
                            {both(fault.title), 6},
                            {both(fault.root_cause), 2},
                            {both(fault.fix), 1}};
  // Each error line counts by itself: what all lines of a cause contain means more than what one of
  // them mentions.
  for (std::size_t i = 0; i < std::min(fault.error_lines.size(), kErrorLines); ++i)
    fields.push_back({lowered(fault.error_lines[i]), 4});
  return fields;
}

struct Score {
  std::size_t words = 0;  // of the query that are found at all
  int weight = 0;
};

// Each word scores in every field that contains it; the whole phrase in one field scores four
// times as much.
Score score_of(const knowledge::FaultClass& fault, const std::vector<std::string>& words,
               const std::string& phrase) {
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

std::vector<const knowledge::FaultClass*> search_causes(const std::string& query) {
  const std::vector<std::string> words = words_of(query);
  std::string phrase;
  for (const std::string& word : words) phrase += (phrase.empty() ? "" : " ") + word;
  std::vector<std::pair<Score, const knowledge::FaultClass*>> found;
  std::size_t most = 0;
  for (const knowledge::FaultClass& fault : knowledge::fault_classes()) {
    const Score score = score_of(fault, words, phrase);
    most = std::max(most, score.words);
    if (score.words > 0) found.emplace_back(score, &fault);
  }
  // If no cause contains more than half of the words, none is what the user looked for.
  if (2 * most <= words.size()) return {};
  std::erase_if(found, [&](const auto& one) { return one.first.words < most; });
  std::ranges::stable_sort(found,
                           [](const auto& a, const auto& b) { return a.first.weight > b.first.weight; });
  std::vector<const knowledge::FaultClass*> causes;
  for (const auto& [score, fault] : found) causes.push_back(fault);
  return causes;
}

std::string cause_hint(const std::string& wanted) {
  std::vector<std::string> known;
  for (const knowledge::FaultClass& fault : knowledge::fault_classes()) known.push_back(fault.id);
  const std::string near = nearest_word(wanted, known);
  return near.empty() ? say("scankit explain lists all causes") : say("did you mean {}?", near);
}

namespace {

// A heading with indented lines; nothing without lines. No heading continues the section before.
void section(const std::string& name, const std::vector<std::string>& lines) {
  if (lines.empty()) return;
  if (!name.empty()) std::cout << "\n" << name << "\n";
  for (const std::string& line : lines) std::cout << "  " << line << "\n";
}

std::vector<std::string> all_said(const std::vector<std::string>& english) {
  std::vector<std::string> texts;
  for (const std::string& text : english) texts.push_back(said(text));
  return texts;
}

// One of the ways to prove a cause: what is looked at, or why the doctor does not use this way.
void side(const std::string& name, const std::vector<std::string>& lines, const std::string& excuse) {
  section(name, lines);
  if (!excuse.empty()) section(lines.empty() ? name : "", {say("Not by doctor: {}", excuse)});
}

std::string files_excuse(const knowledge::FaultClass& fault) { return said(fault.no_static); }

void print_list() {
  std::size_t width = 0;
  for (const knowledge::FaultClass& fault : knowledge::fault_classes())
    width = std::max(width, fault.id.size());
  std::cout << say("Causes and their evidence: f the files, i an observed import, l an error log.") << "\n";
  for (const knowledge::FaultClass& fault : knowledge::fault_classes())
    std::cout << "  " << in_column(fault.id, width + 2) << (fault.by_files() ? 'f' : '-')
              << (fault.by_import() ? 'i' : '-') << (fault.by_log() ? 'l' : '-') << "  " << said(fault.title)
              << "\n";
}

constexpr std::size_t kFewCauses = 5;  // of a search

void print_found(const std::string& query, const std::vector<const knowledge::FaultClass*>& found) {
  const std::size_t shown = std::min(found.size(), kFewCauses);
  std::size_t width = 0;
  for (std::size_t i = 0; i < shown; ++i) width = std::max(width, found[i]->id.size());
  std::cout << say("Causes that mention \"{}\", best match first:", report::plain(query, false)) << "\n";
  for (std::size_t i = 0; i < shown; ++i)
    std::cout << "  " << in_column(fmt::format("scankit explain {}", found[i]->id), width + 18)
              << said(found[i]->title) << "\n";
  if (const std::size_t n = found.size() - shown; n > 0)
    std::cout << say_n(n, "and {} more cause; add a word to narrow the search",
                       "and {} more causes; add a word to narrow the search", n)
              << "\n";
}

// Explains a pasted error message by the rules for logs. Returns false if they find no error in it.
bool explain_message(const std::string& text) {
  const Log log = logs::explain_text(text);
  bool any = false;
  for (const LogHit& hit : log.hits) {
    if (hit.role == "clue") continue;
    any = true;
    const auto cause = cause_from_slug(hit.cause);
    if (cause)
      std::cout << info(*cause).slug << ": " << said(info(*cause).title) << "\n";
    else
      std::cout << say("not a fault of the installation") << "\n";
    std::cout << "  " << report::plain(tr(hit.meaning), false) << "\n";
    if (!hit.settles.empty())
      std::cout << "  " << report::plain(say("to be sure, check {}", tr(hit.settles)), false) << "\n";
    if (cause) std::cout << "  scankit explain " << info(*cause).slug << "\n";
    for (const std::string& other : hit.alternatives)
      std::cout << "  " << say("it may also be {}: scankit explain {}", other, other) << "\n";
  }
  return any;
}

int print_cause(const knowledge::FaultClass& fault) {
  const auto known = cause_from_slug(fault.id);
  std::cout << fault.id << ": " << said(known ? info(*known).title : fault.title) << "\n";
  section(say("What users see"), fault.error_lines);
  section(say("Seen together with it"), fault.seen_with);
  section(say("Why"), {said(fault.root_cause)});
  side(say("How it is proven from files"), all_said(fault.proof_static), files_excuse(fault));
  side(say("How it is proven by running"), all_said(fault.proof_observed), said(fault.no_observed));
  side(say("How a log shows it"),
       fault.by_log() ? std::vector{say("scankit doctor --log FILE knows the lines above.")}
                      : std::vector<std::string>(),
       said(fault.no_log));
  section(say("How it is fixed"), {said(fault.fix)});
  if (known) section(say("What scankit does"), {said(info(*known).next_step)});
  section(say("Seen in"), fault.sources);
  return kExitClean;
}

}  // namespace

// Tries in this order: a slug (with "-" or " " for "_"), an error message, a search.
int run_explain(const std::string& asked) {
  if (asked.empty()) {
    print_list();
    return kExitClean;
  }
  std::string slug = asked;
  std::ranges::transform(slug, slug.begin(), [](char c) { return c == '-' || c == ' ' ? '_' : c; });
  if (const knowledge::FaultClass* fault = knowledge::fault_class(slug)) return print_cause(*fault);
  if (explain_message(asked)) return kExitClean;
  if (const auto found = search_causes(asked); !found.empty()) {
    print_found(asked, found);
    return kExitClean;
  }
  report_error(
      {Errc::InvalidArgument, message("no cause is called \"{}\" or mentions it", asked), cause_hint(slug)});
  return kExitUsage;
}

}  // namespace scankit::cli

// SPDX-License-Identifier: Apache-2.0
#include "doctor/text/pseudo_data.h"

#include <algorithm>
#include <cctype>
#include <fstream>

#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "doctor/text/pseudo.h"

namespace scankit {
namespace {

using Json = nlohmann::json;

// Facts that are sentences. What they say counts only as a whole: else every English word would be data.
bool is_prose(const std::string& key) {
  static const std::set<std::string> keys{
      "note",        "file_detail",     "resolution_note", "why_not_run", "message", "why_not_selected",
      "text",        "nvml_error",      "meaning",         "settles",     "kind",    "source",
      "pretty_name", "libcuda_reached", "described"};
  return keys.contains(key);
}

void words_of(const std::string& text, std::set<std::string>& words) {
  std::string word;
  for (const char c : text + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_') {
      word += c;
      continue;
    }
    if (!word.empty()) words.insert(word);
    word.clear();
  }
}

bool is_word_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool is_chip(const std::string& text) { return text.find_first_not_of("0123456789af") == std::string::npos; }

// Not inside a word: "it" is no part of "with".
void remove(const std::string& whole, std::string& part) {
  for (auto at = part.find(whole); at != std::string::npos; at = part.find(whole, at + 1)) {
    const auto end = at + whole.size();
    const bool starts = at == 0 || !is_word_character(part[at - 1]) || !is_word_character(whole.front());
    const bool ends = end == part.size() || !is_word_character(part[end]) || !is_word_character(whole.back());
    if (starts && ends) part.replace(at, whole.size(), " ");
  }
}

}  // namespace

PseudoData::PseudoData(const Json& facts) : facts_(facts) { collect(facts, ""); }

void PseudoData::add_whole(const std::string& text) {
  if (text.size() > 1) whole_.insert(text);
}

void PseudoData::add_words(const std::string& text) { words_of(text, words_); }

std::string PseudoData::stranger(std::string part) const {
  const auto start = std::min(part.find_first_not_of(' '), part.size());
  const auto colon = std::min(part.find(": ", start), part.size());
  if (is_pointer(part.substr(start, colon - start))) {
    part.erase(0, colon);
    if (part == ": true" || part == ": false") return "";
  }
  if (is_line_of_python(part) || is_quoted(part)) return "";
  for (const std::string& whole : whole_) remove(whole, part);
  for (std::size_t at = 0; at < part.size();) {
    const auto end = std::min(part.find_first_of(" \t", at), part.size());
    std::set<std::string> pieces;
    words_of(part.substr(at, end - at), pieces);
    at = end + 1;
    for (const std::string& piece : pieces)
      if (!is_data(piece)) return piece;
  }
  return "";
}

void PseudoData::collect(const Json& value, const std::string& key) {
  if (value.is_string()) {
    add_whole(value.get<std::string>());
    if (!is_prose(key)) words_of(value.get<std::string>(), words_);
  }
  for (const auto& [name, member] : value.items()) {
    if (key == "environment") words_.insert(name);
    if (value.is_structured()) collect(member, value.is_object() ? name : key);
  }
}

bool PseudoData::is_pointer(const std::string& text) const {
  if (!text.starts_with('/')) return false;
  try {
    return facts_.contains(Json::json_pointer(text));
  } catch (const Json::exception&) {
    return false;
  }
}

bool PseudoData::is_quoted(const std::string& part) const {
  return part.find(' ') != std::string::npos && std::ranges::any_of(whole_, [&](const std::string& whole) {
           return whole.find(part) != std::string::npos;
         });
}

bool PseudoData::is_line_of_python(const std::string& part) const {
  if (!part.starts_with("from ") || part.find(" import ") == std::string::npos) return false;
  std::set<std::string> names;
  words_of(part, names);
  return std::ranges::all_of(
      names, [&](const std::string& name) { return name == "from" || name == "import" || is_data(name); });
}

bool PseudoData::is_data(const std::string& word) const {
  const bool letters = std::ranges::any_of(word, [](unsigned char c) { return std::isalpha(c) != 0; });
  if (!letters || words_.contains(word)) return true;
  if (std::isdigit(static_cast<unsigned char>(word.front())) != 0 && is_chip(word)) return true;
  for (const std::string_view kind : {"sm_", "compute_", "cu"})
    if (word.starts_with(kind) && word.size() > kind.size() && is_chip(word.substr(kind.size()))) return true;
  return word.ends_with('e') && word.find_first_not_of("0123456789") + 1 == word.size();  // of "2.44e-08"
}

std::vector<std::string> untranslated(const std::string& text, const PseudoData& data) {
  std::vector<std::string> problems;
  bool open = false;
  const auto parts = parts_outside_sentences(text, open);
  if (open) problems.push_back("a sentence was cut in\n" + text);
  std::set<std::string> told;
  for (const std::string& part : parts)
    if (const std::string word = data.stranger(part); !word.empty() && told.insert(part).second)
      problems.push_back("\"" + word + "\" is neither translated nor data in: " + part);
  return problems;
}

std::string without_legend(std::string text) {
  for (const char* name : {"$SITE2", "$SITE", "$ENV"}) {
    const std::string begins = std::string("\n") + name + " = ";
    const auto legend = text.find(begins);
    if (legend == std::string::npos) continue;
    const auto path = legend + begins.size(), end = text.find('\n', path);
    const std::string directory = text.substr(path, end - path);
    text.erase(legend, end - legend);
    for (auto at = text.find(name); at != std::string::npos; at = text.find(name, at + directory.size()))
      text.replace(at, std::string_view(name).size(), directory);
  }
  return text;
}

Result<std::string> make_pseudo_mo(const std::string& pot, const std::string& folder) {
  const std::string po = folder + "/qps.po";
  std::string mo = folder + "/qps.mo";
  SCANKIT_TRY(const std::string text, read_whole_file(pot));
  std::ofstream(po) << pseudo_po(read_pot(text));
  ProcessRequest request;
  request.argv = {"msgfmt", "-o", mo, po};
  SCANKIT_TRY(const ProcessResult made, run_process(request));
  if (!made.ok()) return Error{Errc::ToolFailed, made.err, ""};
  return mo;
}

}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>

#include "doctor/base/files.h"
#include "doctor/base/text.h"
#include "doctor/text/catalogue.h"

namespace scankit {
namespace {

// "de_AT.UTF-8@euro": language, territory, codeset, modifier (XPG; gettext manual, "Locale Names").
struct LocaleName {
  std::string language, codeset, modifier;  // language: "de_AT"
};
LocaleName parsed(std::string_view name) {
  LocaleName out;
  const auto at = name.find('@');
  if (at != std::string_view::npos) out.modifier = name.substr(at);
  name = name.substr(0, at);
  const auto dot = name.find('.');
  if (dot != std::string_view::npos) out.codeset = name.substr(dot + 1);
  out.language = name.substr(0, dot);
  return out;
}

// de_AT@euro, de_AT, de@euro, de: the order in which gettext looks.
void add_names(const std::string& locale, std::vector<std::string>& names) {
  const LocaleName name = parsed(locale);
  const std::string bare = name.language.substr(0, name.language.find('_'));
  for (const std::string& language : {name.language, bare})
    for (const std::string& modifier : {name.modifier, std::string()})
      if (const std::string full = language + modifier;
          !language.empty() && std::ranges::find(names, full) == names.end())
        names.push_back(full);
}

bool is_utf8(std::string codeset) {
  std::erase(codeset, '-');
  return lowered(codeset) == "utf8";
}

bool is_english(std::string_view code) { return code == "en" || code.starts_with("en_") || code == "C"; }

std::string locale_of(const Variables& variables, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const auto value = variables(name); value && !value->empty()) return *value;
  return "";
}

std::string list_of_languages() {
  std::string text = "en";
  for (const std::string& code : compiled_languages()) text += ", " + code;
  return text;
}

}  // namespace

// gettext manual, "Locale Environment Variables": LANGUAGE, a list, goes before LC_ALL, LC_MESSAGES and LANG,
// unless these choose the C locale. A locale that is not UTF-8 gets English: gettext would convert the text,
// and the system's converter cannot be loaded into a static program.
std::vector<std::string> wanted_languages(const Variables& variables) {
  const std::string locale = locale_of(variables, {"LC_ALL", "LC_MESSAGES", "LANG"});
  const LocaleName name = parsed(locale);
  if (locale.empty() || name.language == "C" || name.language == "POSIX" || !is_utf8(name.codeset)) return {};
  std::vector<std::string> names;
  const std::string list = variables("LANGUAGE").value_or("");
  for (std::size_t start = 0; start < list.size();) {
    const auto end = std::min(list.find(':', start), list.size());
    add_names(list.substr(start, end - start), names);
    start = end + 1;
  }
  if (list.empty()) add_names(locale, names);
  const auto english = std::ranges::find_if(names, is_english);  // what comes after it is never reached
  names.erase(english, names.end());
  return names;
}

// LC_CTYPE says what the terminal shows.
std::string locale_in_the_way(const std::string& wish, const Variables& variables) {
  const std::string locale = locale_of(variables, {"LC_ALL", "LC_CTYPE", "LANG"});
  const LocaleName name = parsed(locale);
  return wish.empty() || is_english(wish) || name.codeset.empty() || is_utf8(name.codeset) ? "" : locale;
}

Result<std::unique_ptr<Language>> choose_language(const std::string& wish, const Variables& variables) {
  if (wish.empty()) {
    for (const std::string& code : wanted_languages(variables))
      if (auto language = compiled_language(code)) return language;
    return std::unique_ptr<Language>();
  }
  if (wish.ends_with(".mo")) {
    auto bytes = read_whole_file(wish);
    if (!bytes) return bytes.error();
    return read_catalogue(*std::move(bytes), wish);
  }
  if (is_english(wish) || !locale_in_the_way(wish, variables).empty()) return std::unique_ptr<Language>();
  std::vector<std::string> names;
  add_names(wish, names);
  for (const std::string& code : names)
    if (auto language = compiled_language(code)) return language;
  return Error{Errc::InvalidArgument, message("--lang {}: no such translation", wish),
               message("available: {}; or give a .mo file", list_of_languages())};
}

std::string take_language_option(std::vector<std::string>& words) {
  std::string wish;
  for (std::size_t i = 0; i < words.size() && words[i] != "--";) {
    const bool apart = words[i] == "--lang" && i + 1 < words.size();
    const bool joined = words[i].starts_with("--lang=");
    if (!apart && !joined) {
      ++i;
      continue;
    }
    wish = apart ? words[i + 1] : words[i].substr(7);
    const auto from = words.begin() + static_cast<std::ptrdiff_t>(i);
    words.erase(from, from + (apart ? 2 : 1));
  }
  return wish;
}

}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/base/say.h"

// Translations: the compiled catalogues (.mo) of GNU gettext, read here, because its own reader asks for a
// locale of the system, which a static program cannot load.

namespace scankit {

// One language out of the bytes of a .mo file, which are not trusted. `name` is for error messages.
Result<std::unique_ptr<Language>> read_catalogue(std::string bytes, const std::string& name);

// The sentences whose translation has other places for values than the English one.
Result<std::vector<std::string>> misplaced_sentences(std::string bytes, const std::string& name);

// The languages that are compiled in: "de" or "pt_BR", sorted.
std::vector<std::string> compiled_languages();
// nullptr where it is not compiled in.
std::unique_ptr<Language> compiled_language(std::string_view code);

// "nplurals=3; plural=(n==1 ? 0 : n%10>=2 && n%10<=4 ? 1 : 2);" of a catalogue's header: the form for `n`.
// Nothing where the rule cannot be read or names a form that there is not.
std::optional<std::size_t> plural_form(std::string_view header, std::size_t n);

using Variables = std::function<std::optional<std::string>(std::string_view)>;

// The languages that the user's variables ask for, the best first: "de_AT", "de". Empty: English.
std::vector<std::string> wanted_languages(const Variables& variables);

// `wish`: what --lang named ("de", "en", or the path of a .mo file), "" where nothing did; then the variables
// decide, and a language that nobody translated is English. nullptr: English.
Result<std::unique_ptr<Language>> choose_language(const std::string& wish, const Variables& variables);

// The user's locale where it names a codeset that cannot show what --lang asks for: "zh_CN.GBK"; "" where nothing is
// known against it, as in a container without a locale. choose_language() then answers English.
std::string locale_in_the_way(const std::string& wish, const Variables& variables);

// Takes `--lang X` and `--lang=X` out of the words of a command line, wherever they stand before "--", since
// the help itself is said in that language. The last one counts.
std::string take_language_option(std::vector<std::string>& words);

}  // namespace scankit

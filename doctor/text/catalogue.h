// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
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

}  // namespace scankit

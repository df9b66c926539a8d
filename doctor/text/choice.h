// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/base/say.h"

namespace scankit {

using Variables = std::function<std::optional<std::string>(std::string_view)>;

// The languages that the user's variables ask for, the best first: "de_AT", "de". Empty: English.
std::vector<std::string> wanted_languages(const Variables& variables);

// `wish`: what --lang named ("de", "en", or the path of a .mo file), "" where nothing did; then the variables
// decide, and a language that nobody translated is English. nullptr: English.
Result<std::unique_ptr<Language>> choose_language(const std::string& wish, const Variables& variables);

// Takes `--lang X` and `--lang=X` out of the words of a command line, wherever they stand before "--", since
// the help itself is said in that language. The last one counts.
std::string take_language_option(std::vector<std::string>& words);

}  // namespace scankit

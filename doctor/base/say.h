// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fmt/core.h>

#include <string>

namespace scankit {

std::string say_formatted(fmt::string_view english, fmt::format_args values);

// A sentence for people: `say("{} needs {}", file, library)`. The English text, braces included, is the key
// of its translation (as with gettext: one sentence a call, never built from halves, since other languages
// order words otherwise). Values go in as they are; what is untrusted is made plain by the report.
template <typename... Values>
std::string say(fmt::format_string<Values...> english, Values&&... values) {
  return say_formatted(english, fmt::make_format_args(values...));
}

}  // namespace scankit

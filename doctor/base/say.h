// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fmt/core.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace scankit {

// The translations into one language; doctor/text implements it. Texts without a translation stay
// English. The views that it returns stay valid as long as the object.
class Language {
 public:
  Language() = default;
  Language(const Language&) = delete;
  Language& operator=(const Language&) = delete;
  virtual ~Language() = default;
  virtual std::optional<std::string_view> sentence(std::string_view english) const = 0;
  // The form that this language uses for `n` things; `one` is the English key.
  virtual std::optional<std::string_view> counted(std::string_view one, std::size_t n) const = 0;
  virtual std::string_view code() const = 0;  // "de"; "" where it does not say
};

// Sets the language of all sentences for the lifetime of the object, and restores the previous one
// afterwards. nullptr means English. The language is global and not locked: set it while no other thread
// says anything.
class Speaking {
 public:
  explicit Speaking(const Language* language);
  Speaking(const Speaking&) = delete;
  Speaking& operator=(const Speaking&) = delete;
  ~Speaking();

 private:
  const Language* before_;
};
// nullptr means English.
const Language* spoken_language();

// What say() and say_n() call after the compiler has checked the arguments. They are not templates, so
// that fmt's formatting code exists once in the program.
std::string say_formatted(fmt::string_view english, fmt::format_args values,
                          const Language* language = spoken_language());
std::string say_counted(std::size_t n, fmt::string_view one, fmt::string_view many, fmt::format_args values,
                        const Language* language = spoken_language());

// A sentence for people: `say("{} needs {}", file, library)`. The English text, braces included, is the key
// of its translation (as with gettext: one sentence a call, never built from halves, since other languages
// order words otherwise). Values go in as they are; what is untrusted is made plain by the report.
template <typename... Values>
std::string say(fmt::format_string<Values...> english, Values&&... values) {
  return say_formatted(english, fmt::make_format_args(values...));
}

// A sentence with a number: `say_n(n, "{} name is missing", "{} names are missing", n)`. Languages have from
// one to six forms; English picks by n == 1, a translation by its own rule.
template <typename... Values>
std::string say_n(std::size_t n, fmt::format_string<Values...> one, fmt::format_string<Values...> many,
                  Values&&... values) {
  return say_counted(n, one, many, fmt::make_format_args(values...));
}

// Marks a text for the catalogue that is said later, by said(): gettext's N_().
constexpr std::string_view sayable(std::string_view english) { return english; }

// A text of a table (causes.def, the YAML files, Check::question): nothing is put into it here.
std::string said(std::string_view english);

// What is said one after the other, with the punctuation of the language; empty parts are left out.
std::string said_list(const std::vector<std::string>& parts);  // "a, b"
std::string clauses(const std::vector<std::string>& parts);    // whole clauses: "a; b"
std::string sentences(const std::vector<std::string>& parts);  // "A. B."

// Whether both texts have the same places for values: {} {0} {name}. A translation may order them anew by
// numbers; one that drops, adds or garbles a place is not used.
bool same_places(std::string_view english, std::string_view translation);

}  // namespace scankit

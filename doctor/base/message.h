// SPDX-License-Identifier: Apache-2.0
// A sentence that is not yet in a language: what a snapshot stores where a fact needs words ("no file of x
// is on the path"). Facts are the same in every language; whoever prints a Message chooses one.
#pragma once
#include <fmt/core.h>

#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "doctor/base/say.h"

namespace scankit {

struct MessageArgument;

// The English template of the catalogue and what goes into its places. A text that belongs to nobody's
// catalogue (an exception's words, what another program printed) is a Message too: it reads the same in
// every language. The conversion from a string is implicit for that use. Do not pass it the result of say():
// that is already in the language of the reader.
class Message {
 public:
  // Compiled once: most facts hold several messages, and copying one takes two strings and a vector of variants.
  Message();
  Message(std::string text);
  Message(const char* text);
  // A sentence; with `many`, one whose form depends on `n`, as in say_n().
  Message(std::string_view one, std::string_view many, std::size_t n, std::vector<MessageArgument> arguments);
  Message(const Message&);
  Message(Message&&) noexcept;
  Message& operator=(const Message&);
  Message& operator=(Message&&) noexcept;
  ~Message();

  bool empty() const { return text_.empty(); }
  // In the language that is set (Speaking), and for programs.
  std::string tr() const { return in(spoken_language()); }
  std::string english() const { return in(nullptr); }
  std::string in(const Language* language) const;
  // Applies `change` to the text, or to every text among the arguments of a sentence; its template stays.
  void change_texts(const std::function<void(std::string&)>& change);

  friend bool operator==(const Message&, const Message&);
  friend void to_json(nlohmann::json& json, const Message& message);
  friend void from_json(const nlohmann::json& json, Message& message);

 private:
  std::size_t most_bytes() const;  // that in() can return, roughly

  std::string text_;  // the template, or the text itself where `sentence_` is false
  std::string many_;  // "" where no number decides about the form
  std::size_t n_ = 0;
  bool sentence_ = false;
  std::vector<MessageArgument> arguments_;
};

// A value for one place. Numbers keep their type because a place may format them: "{:.1f}".
struct MessageArgument {
  std::string name;  // of a place like {file}; "" for {} and {0}
  std::variant<std::string, std::int64_t, std::uint64_t, double, Message> value;
  friend bool operator==(const MessageArgument&, const MessageArgument&) = default;
};

// A text of a table (sayable()), which has no places.
inline Message table_text(std::string_view english) { return {english, {}, 0, {}}; }

inline std::string tr(const Message& message) { return message.tr(); }
inline std::string english(const Message& message) { return message.english(); }
std::ostream& operator<<(std::ostream& out, const Message& message);  // English, for test failures

// Joins whole clauses, "a; b", without those that are empty.
Message clauses_of(const std::vector<Message>& parts);

// In JSON: a string for a text, {"message": TEMPLATE, "arguments": [...]} for a sentence, and with a number
// also "plural" and "n". An argument with a name is {"name": ..., "value": ...}. What a stranger's file says is checked: a template whose places could cost memory
// or do not fit the arguments is read as a text.
void to_json(nlohmann::json& json, const Message& message);
void from_json(const nlohmann::json& json, Message& message);

// A value as message() gets it. It owns nothing, so that the two thousand calls leave only a few words on the stack for
// message_of() to copy.
using MessageValue = std::variant<std::string_view, std::int64_t, std::uint64_t, double, const Message*>;

// What message() is without its types. A sentence has one form where `many` is "".
Message message_of(std::string_view one, std::string_view many, std::size_t n,
                   std::initializer_list<MessageValue> values);

// Whether a sentence keeps the value as it is. Others (bool, char, what has a formatter) become text.
template <class Value>
concept KeptInMessage = std::same_as<Value, Message> || std::convertible_to<const Value&, std::string_view> ||
                        (std::integral<Value> && !std::same_as<Value, char> && !std::same_as<Value, bool>) ||
                        std::floating_point<Value>;
template <KeptInMessage Value>
const Value& kept_in_message(const Value& value) {
  return value;
}
template <class Value>
std::string kept_in_message(const Value& value) {
  return fmt::format("{}", value);
}

template <KeptInMessage Value>
MessageValue message_value(const Value& value) {
  if constexpr (std::same_as<Value, Message>)
    return &value;
  else if constexpr (std::convertible_to<const Value&, std::string_view>)
    return std::string_view(value);
  else if constexpr (std::signed_integral<Value>)
    return static_cast<std::int64_t>(value);
  else if constexpr (std::unsigned_integral<Value>)
    return static_cast<std::uint64_t>(value);
  else
    return static_cast<double>(value);
}

// message("{} needs {}", file, library): say() for a fact. The compiler checks the places.
template <typename... Values>
Message message(fmt::format_string<Values...> english, Values&&... values) {
  const fmt::string_view text = english;
  return message_of({text.data(), text.size()}, {}, 0, {message_value(kept_in_message(values))...});
}

// The same for say_n().
template <typename... Values>
Message message_n(std::size_t n, fmt::format_string<Values...> one, fmt::format_string<Values...> many,
                  Values&&... values) {
  const fmt::string_view single = one, several = many;
  return message_of({single.data(), single.size()}, {several.data(), several.size()}, n,
                    {message_value(kept_in_message(values))...});
}

}  // namespace scankit

// say("{}: {}", path, message): the Message in the language of the sentence around it.
template <>
struct fmt::formatter<scankit::Message> {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  template <class Context>
  auto format(const scankit::Message& message, Context& context) const {
    auto out = context.out();
    for (const char c : message.tr()) *out++ = c;
    return out;
  }
};

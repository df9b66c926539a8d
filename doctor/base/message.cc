// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/message.h"

#include <fmt/args.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <ostream>
#include <stdexcept>

namespace scankit {
namespace {
using Json = nlohmann::json;

// A stranger's template may only have places like {}, {3} and {:.1f}: "{:999999999}" would fill the memory.
bool is_harmless(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '{') continue;
    if (at + 1 < text.size() && text[at + 1] == '{') {
      ++at;
      continue;
    }
    const auto end = text.find('}', at);
    if (end == std::string_view::npos) return false;
    const std::string_view inside = text.substr(at + 1, end - at - 1);
    std::size_t digits = 0;
    for (const char c : inside) {
      if (c == '{') return false;
      digits += std::isdigit(static_cast<unsigned char>(c)) != 0 ? 1 : 0;
    }
    if (digits > 3) return false;
    at = end;
  }
  return true;
}

MessageArgument argument_from(const Json& json) {
  if (json.is_object() && json.contains("name")) {
    MessageArgument named = argument_from(json.at("value"));
    named.name = json.at("name").get<std::string>();
    return named;
  }
  if (json.is_number_unsigned()) return {"", json.get<std::uint64_t>()};
  if (json.is_number_integer()) return {"", json.get<std::int64_t>()};
  if (json.is_number()) return {"", json.get<double>()};
  if (json.is_object()) return {"", json.get<Message>()};
  return {"", json.get<std::string>()};
}

}  // namespace

Message::Message() = default;
Message::Message(std::string text) : text_(std::move(text)) {}
Message::Message(const char* text) : text_(text) {}
Message::Message(const Message&) = default;
Message::Message(Message&&) noexcept = default;
Message& Message::operator=(const Message&) = default;
Message& Message::operator=(Message&&) noexcept = default;
Message::~Message() = default;

Message::Message(std::string_view one, std::string_view many, std::size_t n,
                 std::vector<MessageArgument> arguments)
    : text_(one), many_(many), n_(n), sentence_(true), arguments_(std::move(arguments)) {}

Message message_of(std::string_view one, std::string_view many, std::size_t n,
                   std::initializer_list<MessageValue> values) {
  std::vector<MessageArgument> arguments;
  arguments.reserve(values.size());
  for (const MessageValue& value : values)
    std::visit(
        [&](const auto& kept) {
          using Kept = std::decay_t<decltype(kept)>;
          if constexpr (std::is_same_v<Kept, const Message*>)
            arguments.push_back({"", *kept});
          else if constexpr (std::is_same_v<Kept, std::string_view>)
            arguments.push_back({"", std::string(kept)});
          else
            arguments.push_back({"", kept});
        },
        value);
  return {one, many, n, std::move(arguments)};
}

std::string Message::in(const Language* language) const {
  if (!sentence_) return text_;
  fmt::dynamic_format_arg_store<fmt::format_context> values;
  const auto put = [&](const std::string& name, const auto& value) {
    if (name.empty())
      values.push_back(value);
    else
      values.push_back(fmt::arg(name.c_str(), value));
  };
  for (const MessageArgument& argument : arguments_)
    std::visit(
        [&](const auto& value) {
          if constexpr (std::is_same_v<std::decay_t<decltype(value)>, Message>)
            put(argument.name, value.in(language));
          else
            put(argument.name, value);
        },
        argument.value);
  try {
    return many_.empty() ? say_formatted(text_, values, language)
                         : say_counted(n_, text_, many_, values, language);
  } catch (const std::runtime_error&) {  // of fmt: a stored file was changed by hand
    return text_;
  }
}

void Message::change_texts(const std::function<void(std::string&)>& change) {
  if (!sentence_) return change(text_);
  for (MessageArgument& argument : arguments_) {
    if (auto* text = std::get_if<std::string>(&argument.value)) change(*text);
    if (auto* part = std::get_if<Message>(&argument.value)) part->change_texts(change);
  }
}

bool operator==(const Message& a, const Message& b) {
  return a.sentence_ == b.sentence_ && a.text_ == b.text_ && a.many_ == b.many_ && a.n_ == b.n_ &&
         a.arguments_ == b.arguments_;
}

std::ostream& operator<<(std::ostream& out, const Message& message) { return out << message.english(); }

Message clauses_of(const std::vector<Message>& parts) {
  Message all;
  for (const Message& part : parts) {
    if (part.empty()) continue;
    all = all.empty() ? part : message("{}; {}", all, part);
  }
  return all;
}

std::size_t Message::most_bytes() const {
  std::size_t longest = 32;  // a number
  for (const MessageArgument& argument : arguments_) {
    if (const auto* text = std::get_if<std::string>(&argument.value))
      longest = std::max(longest, text->size());
    if (const auto* inner = std::get_if<Message>(&argument.value))
      longest = std::max(longest, inner->most_bytes());
  }
  const auto places = [](const std::string& text) {
    return static_cast<std::size_t>(std::ranges::count(text, '{'));
  };
  return text_.size() + many_.size() + std::max(places(text_), places(many_)) * longest;
}

void to_json(Json& json, const Message& message) {
  if (!message.sentence_) {
    json = message.text_;
    return;
  }
  Json arguments = Json::array();
  for (const MessageArgument& argument : message.arguments_)
    std::visit(
        [&](const auto& value) {
          arguments.push_back(argument.name.empty() ? Json(value)
                                                    : Json{{"name", argument.name}, {"value", value}});
        },
        argument.value);
  json = Json{{"message", message.text_}, {"arguments", std::move(arguments)}};
  if (message.many_.empty()) return;
  json["plural"] = message.many_;
  json["n"] = message.n_;
}

void from_json(const Json& json, Message& message) {
  if (json.is_string()) {
    message = json.get<std::string>();
    return;
  }
  message = Message(json.at("message").get<std::string>(), json.value("plural", ""),
                    json.value("n", std::size_t{0}), {});
  if (json.contains("arguments"))
    for (const Json& argument : json.at("arguments")) message.arguments_.push_back(argument_from(argument));
  // A stranger's {0}{0}{0}... multiplies an argument that is a message like itself.
  constexpr std::size_t kMostBytes = 16u << 20;
  if (!is_harmless(message.text_) || !is_harmless(message.many_) || message.most_bytes() > kMostBytes)
    message = Message(message.text_);
}

}  // namespace scankit

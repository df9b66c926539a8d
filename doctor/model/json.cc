// SPDX-License-Identifier: Apache-2.0
#include "doctor/model/json.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "doctor/base/say.h"
#include "doctor/base/text.h"

namespace scankit {

std::string plain_json(std::string dumped) {
  const auto unusual = [](char c) { return static_cast<unsigned char>(c) >= 0x7F; };
  if (std::ranges::none_of(dumped, unusual)) return dumped;
  std::string out;
  out.reserve(dumped.size());
  for (std::size_t at = 0; at < dumped.size();) {
    const std::size_t length = std::max<std::size_t>(utf8_sequence_length(dumped, at), 1);
    const std::string_view sequence = std::string_view(dumped).substr(at, length);
    const auto byte = [&](std::size_t i) {
      return static_cast<unsigned>(static_cast<unsigned char>(sequence[i]));
    };
    if (sequence == "\x7F")
      out += "\\u007f";
    else if (!acts_on_terminal(sequence))
      out += sequence;
    else if (length == 2)
      out += fmt::format("\\u{:04x}", (byte(0) & 0x1F) << 6 | (byte(1) & 0x3F));
    else
      out += fmt::format("\\u{:04x}", (byte(0) & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F));
    at += length;
  }
  return out;
}

namespace {
using Json = nlohmann::json;

// Reads a document without keeping it; `false` ends the reading.
class JsonCounter : public nlohmann::json_sax<Json> {
 public:
  JsonCounter(std::string_view text, const JsonLimits& limits) : text_(text), limits_(limits) {}
  const std::string& problem() const { return problem_; }

  bool null() override { return count(); }
  bool boolean(bool) override { return count(); }
  bool number_integer(number_integer_t) override { return count(); }
  bool number_unsigned(number_unsigned_t) override { return count(); }
  // No field of a snapshot or a lock is one, and the cast to a whole number has no defined result for 2e88.
  bool number_float(number_float_t, const string_t&) override {
    return fail(say("it has a number with a fraction, an exponent or more than 64 bits"));
  }
  bool string(string_t&) override { return count(); }
  bool binary(binary_t&) override { return count(); }
  bool key(string_t&) override { return true; }
  bool start_object(std::size_t) override {
    if (++objects_ > limits_.objects) return fail(say("it has more than {} objects", limits_.objects));
    return deeper();
  }
  bool start_array(std::size_t) override { return deeper(); }
  bool end_object() override { return --depth_, true; }
  bool end_array() override { return --depth_, true; }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception&) override {
    const std::string_view before = text_.substr(0, position == 0 ? 0 : position - 1);
    const auto line = std::ranges::count(before, '\n') + 1;
    const auto start = before.rfind('\n');
    const std::size_t column = before.size() - (start == std::string_view::npos ? 0 : start + 1) + 1;
    return fail(say("it is not valid JSON at line {}, column {}", line, column));
  }

 private:
  bool fail(std::string problem) {
    problem_ = std::move(problem);
    return false;
  }
  bool count() {
    return ++values_ <= limits_.values || fail(say("it has more than {} values", limits_.values));
  }
  bool deeper() {
    if (++depth_ > limits_.depth) return fail(say("it nests deeper than {} levels", limits_.depth));
    return count();
  }

  std::string_view text_;
  const JsonLimits& limits_;
  std::size_t depth_ = 0, values_ = 0, objects_ = 0;
  std::string problem_;
};

}  // namespace

Result<Json> parse_bounded_json(std::string_view text, const JsonLimits& limits) {
  JsonCounter counter(text, limits);
  if (!Json::sax_parse(text, &counter)) return Error{Errc::Malformed, counter.problem(), ""};
  return parse_json<Json>(text);
}

template <class Json>
Json parse_json(std::string_view text) {
  return Json::parse(text);
}
template <class Json>
Json parse_json_or_discard(std::string_view text) {
  return Json::parse(text, nullptr, false);
}
template <class Json>
std::string dump_json(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}
template <class Json>
std::string dump_ascii_json(const Json& json) {
  return json.dump(-1, ' ', true, Json::error_handler_t::replace);
}
template nlohmann::json parse_json(std::string_view);
template nlohmann::ordered_json parse_json(std::string_view);
template nlohmann::json parse_json_or_discard(std::string_view);
template nlohmann::ordered_json parse_json_or_discard(std::string_view);
template std::string dump_json(const nlohmann::json&, int);
template std::string dump_json(const nlohmann::ordered_json&, int);
template std::string dump_ascii_json(const nlohmann::json&);
template std::string dump_ascii_json(const nlohmann::ordered_json&);

Result<void> readable_schema(const std::string& name, int schema, int newest) {
  if (schema <= newest) return {};
  return Error{Errc::Unsupported,
               message("{} has schema {}, and this scankit reads up to {}", name, schema, newest),
               message("use the scankit that wrote it, or a newer one")};
}

std::string plain_json_problem(std::string_view what) {
  const auto end = what.starts_with("[json.exception.") ? what.find("] ") : std::string_view::npos;
  return std::string(end == std::string_view::npos ? what : what.substr(end + 2));
}

}  // namespace scankit

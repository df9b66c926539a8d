// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <climits>
#include <concepts>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>

#include "doctor/base/result.h"

namespace scankit {

// JSON that is fit for a terminal and means the same: what acts there or reorders what is read (DEL, C1
// controls, bidirectional marks) becomes \uXXXX. Other UTF-8 stays readable. `dumped` is valid JSON.
std::string plain_json(std::string dumped);

// Json is nlohmann::json or ordered_json, for which json.cc has these functions. Used instead of the library's own members,
// because each unit that calls those compiles a parser and a writer of its own.
template <class Json>
Json parse_json(std::string_view text);  // throws the library's parse_error
template <class Json>
Json parse_json_or_discard(std::string_view text);  // is_discarded() where it is no JSON
// On one line where `indent` is -1. What is no UTF-8 is replaced.
template <class Json>
std::string dump_json(const Json& json, int indent = -1);
template <class Json>
std::string dump_ascii_json(const Json& json);  // on one line, everything else as \uXXXX
// The plain text that is printed or kept, with a newline at its end.
template <class Json>
std::string json_document(const Json& json, int indent = 2) {
  return plain_json(dump_json(json, indent)) + "\n";
}

// What a document of somebody else may cost: a value takes some hundred bytes where its text has two, and an
// object becomes a record of the model with a kilobyte. Nesting without end would end our stack.
struct JsonLimits {
  std::size_t depth = 32;
  std::size_t values = 2'000'000, objects = 200'000;  // a large machine's snapshot has some 50,000 and 10,000
};
// `error` is a sentence that says where and why, for a message that names the file; its hint is empty.
Result<nlohmann::json> parse_bounded_json(std::string_view text, const JsonLimits& limits = {});

// What the library says of a field of another type, without the library's own name and number.
std::string plain_json_problem(std::string_view what);

// The string under `key`; "" if `json` is not an object or has no string there. Readers of files that a
// stranger may have written use it instead of get<std::string>(), which throws. Json is nlohmann::json
// or ordered_json.
template <class Json>
std::string json_text(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->template get<std::string>() : "";
}

// `value` as a whole number. Throws the library's type_error where it is none or does not fit into T: get<T>()
// casts what a stranger wrote as 2e88 or -1.5, and such a cast has no defined result.
template <std::integral T, class Json>
T whole_number(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto n = value.template get<typename Json::number_unsigned_t>();
    if (std::in_range<T>(n)) return static_cast<T>(n);
  } else if (value.is_number_integer()) {
    const auto n = value.template get<typename Json::number_integer_t>();
    if (std::in_range<T>(n)) return static_cast<T>(n);
  }
  // Of another type than any number: always the library's exception.
  value.template get_ref<const typename Json::binary_t&>();
  return T{};
}

// The number under "schema", by which a format of ours says which version it is; 0 where there is none.
// Json is nlohmann::json or ordered_json.
template <class Json>
int schema_number(const Json& json) {
  const auto found = json.is_object() ? json.find("schema") : json.end();
  if (found == json.end() || !found->is_number_integer()) return 0;
  const auto number = found->template get<typename Json::number_integer_t>();
  return std::in_range<int>(number) ? static_cast<int>(number) : INT_MAX;
}

// Refuses a file of a newer schema as a whole: half of it, read by the rules of an older one, could be wrong.
// `name` is what the message calls the file. Errc::Unsupported.
Result<void> readable_schema(const std::string& name, int schema, int newest);

}  // namespace scankit

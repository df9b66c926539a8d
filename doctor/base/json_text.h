// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <string>
#include <utility>

namespace scankit {

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

}  // namespace scankit

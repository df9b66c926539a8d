// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace scankit {

// The string under `key`; "" if `json` is not an object or has no string there. Readers of files that a
// stranger may have written use it instead of get<std::string>(), which throws. Json is nlohmann::json
// or ordered_json.
template <class Json>
std::string json_text(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->template get<std::string>() : "";
}

}  // namespace scankit

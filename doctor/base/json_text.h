// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace scankit {

// The text under `key`; "" where `json` is no object, or holds
// no text there. Json: nlohmann::json or ordered_json.
template <class Json>
std::string json_text(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->template get<std::string>() : "";
}

}  // namespace scankit

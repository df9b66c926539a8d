// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace scankit {

// JSON that is fit for a terminal and means the same: what acts there or reorders what is read (DEL, C1
// controls, bidirectional marks) becomes \uXXXX. Other UTF-8 stays readable. `dumped` is valid JSON.
std::string plain_json(std::string dumped);

// A nlohmann JSON as the plain text that is printed or kept: what is no UTF-8 is replaced, a newline at its
// end.
template <class Json>
std::string json_document(const Json& json, int indent = 2) {
  return plain_json(json.dump(indent, ' ', false, Json::error_handler_t::replace)) + "\n";
}

}  // namespace scankit

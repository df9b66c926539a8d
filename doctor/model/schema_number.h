// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <climits>
#include <string>
#include <utility>

#include "doctor/base/result.h"

namespace scankit {

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

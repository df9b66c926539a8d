// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace scankit {

// JSON that is fit for a terminal and means the same: what acts there or reorders what is read (DEL, C1
// controls, bidirectional marks) becomes \uXXXX. Other UTF-8 stays readable. `dumped` is valid JSON.
std::string plain_json(std::string dumped);

}  // namespace scankit

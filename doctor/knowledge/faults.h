// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace scankit {

// One failure class of faults.yaml, for `scankit explain`.
struct FaultClass {
  std::string id, title, stage;
  std::vector<std::string> error_lines;  // what users see
  std::string root_cause;
  std::vector<std::string> proof_static, proof_observed;
  std::string fix;
  std::vector<std::string> sources;
  bool explained_only = false;  // no check raises it, only the log rules
};
const std::vector<FaultClass>& fault_classes();
const FaultClass* fault_class(std::string_view id);  // nullptr where there is none

}  // namespace scankit

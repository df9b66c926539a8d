// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace scankit {

// One failure class of faults.yaml, for `scankit explain`. `id` is the slug of its cause, `stage` is one of
// "build", "environment", "import", "numerics", "runtime" and "speed".
struct FaultClass {
  std::string id, title, stage;
  std::vector<std::string> error_lines;  // what users see; a log rule knows each by itself
  std::vector<std::string> seen_with;    // lines beside them that mean nothing alone
  std::string root_cause;
  std::vector<std::string> proof_static, proof_observed;
  std::string fix;
  std::vector<std::string> sources;
  // Why the doctor has no such side: the files, an observed import, a log. "" where it has.
  std::string no_static, no_observed, no_log;
  bool by_files() const { return no_static.empty(); }
  bool by_import() const { return no_observed.empty(); }
  bool by_log() const { return no_log.empty(); }
};
const std::vector<FaultClass>& fault_classes();
const FaultClass* fault_class(std::string_view id);  // nullptr where there is none

}  // namespace scankit

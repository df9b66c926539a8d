// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/model/finding.h"

// What a run may end with, as scankit-ci.yaml says it. The
// fields, their forms and their texts: policy_fields.cc.
namespace scankit {

inline constexpr int kPolicySchema = 1;
inline constexpr const char* kPolicyFile = "scankit-ci.yaml";

// What the policy says about one cause. A cause without a rule fails from `fail_on` upwards.
struct CauseRule {
  Cause cause{};
  std::string severity = "error";  // of what it names: "error" fails, "warning" and "note" do not
  std::string allowed_until;       // "2027-01-31", the last day (UTC) on which it does not fail; "" for none
  std::string reason;
  unsigned line = 0;
};

// What the policy says about one step.
struct StepRule {
  std::optional<bool> enabled;  // unset: where there is something to look at
  int timeout_s = 0;            // 0: the step's own
  std::vector<std::string> args;
};

struct Policy {
  int schema = kPolicySchema;
  std::string file;                   // as messages call it; "" where there is none
  std::string fail_on = "error";      // severity from which a cause fails that no rule names
  std::optional<bool> allow_empty;    // true: nothing to look at is no failure
  std::vector<std::string> required;  // modules and distributions that have to be there
  std::vector<CauseRule> causes;
  StepRule doctor, env_check, validate;
};

// Fails closed: whatever is not understood is an Error, with
// line and column, and nothing of the file is taken.
Result<Policy> parse_policy(std::string_view text, const std::string& name);
Result<Policy> read_policy(const std::string& path);

// "2027-01-31", of a day that exists.
bool is_date(std::string_view text);
// In UTC, so that a gate opens and closes everywhere at once.
std::string today_utc();

// Gives every finding of the outcomes the severity that the policy wants; what follows from an allowed
// cause is allowed with it. `today`: "2026-11-22". Adds the outcome about allowances that have ended.
void apply_policy(const Policy& policy, const std::string& today, Report& report);

// `scankit ci schema`: JSON Schema, draft 7, which the editors' YAML server reads.
std::string policy_schema();
// The table of ci/README.md.
std::string policy_fields_markdown();

}  // namespace scankit

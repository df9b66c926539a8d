// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/model/finding.h"

// What a run may end with, as scankit-ci.yaml says it. The
// fields, their forms and their texts: policy_fields.cc.
namespace scankit::gate {

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

// An environment that `env create` or `env sync` made, which is still to be what its record says.
struct RecordRule {
  std::string folder;  // as the policy names it
  std::string lock;    // that it is made from; "": scankit.lock, where it is there
};

struct Policy {
  int schema = kPolicySchema;
  std::string file;                   // as messages call it; "" where there is none
  std::string fail_on = "error";      // severity from which a cause fails that no rule names
  std::optional<bool> allow_empty;    // true: nothing to look at is no failure
  std::vector<std::string> required;  // modules and distributions that have to be there
  std::vector<RecordRule> records;
  std::vector<CauseRule> causes;
  StepRule record, doctor, env_check, validate;
};

// Fails closed: whatever is not understood is an Error, with
// line and column, and nothing of the file is taken.
Result<Policy> parse_policy(std::string_view text, const std::string& name);
Result<Policy> read_policy(const std::string& path);

// Gives every finding of the outcomes the severity that the policy wants; what follows from an allowed
// cause is allowed with it. `today`: "2026-11-22". Adds the outcome about allowances that have ended.
void apply_policy(const Policy& policy, const std::string& today, Report& report);

// `scankit ci schema`: JSON Schema, draft 7, which the editors' YAML server reads.
std::string policy_schema();
// The table of ci/README.md.
std::string policy_fields_markdown();

enum class PolicyForm : std::uint8_t {
  Schema,   // the number of this file's form
  Word,     // one of `words`
  Flag,     // true, false
  Seconds,  // a whole number, from 1 to a day
  Date,     // 2027-01-31
  Text,     // a sentence
  Args,     // ["--module", "causal_conv1d_cuda"]
  Names,    // ["torch", "selective_scan_cuda"]: of modules or distributions
  Records,  // .venv, [.venv, /opt/train], {/opt/train: train.lock}
};

// The one table that the parser, the JSON Schema and the README are made of.
template <class Owner>
struct PolicyField {
  std::string_view name;
  PolicyForm form;
  std::vector<std::string_view> words;
  std::string_view text;  // its description in the schema and the README
  std::string_view example;
  std::variant<int Owner::*, std::optional<bool> Owner::*, std::string Owner::*,
               std::vector<std::string> Owner::*, std::vector<RecordRule> Owner::*>
      place;
};

const std::vector<PolicyField<Policy>>& policy_fields();
const std::vector<PolicyField<CauseRule>>& cause_fields();  // below causes.SLUG
const std::vector<PolicyField<StepRule>>& step_fields();    // below steps.NAME

// A step of a run. `options` are those that the policy's `args` may contain: options that change what is
// looked at. Where answers go is decided by the gate, and --import only by whoever runs it
// (ARCHITECTURE.md, decision 17).
struct PolicyStep {
  std::string_view name, command;  // "env_check", "env check"; the latter's words go to the program
  StepRule Policy::*place;
  int timeout_s;
  std::vector<std::string> options;
};
const std::vector<PolicyStep>& policy_steps();

// A module ("torchvision._C") or a distribution ("mamba-ssm").
inline constexpr std::string_view kNamePattern = "^[A-Za-z0-9_][A-Za-z0-9._-]*$";
inline constexpr int kLongestTimeout = 86400;
// ECMA 262, for the schema; the parser is at least as strict.
inline constexpr std::string_view kDatePattern = "^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$";

}  // namespace scankit::gate

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string_view>
#include <variant>

#include "ci/gate/policy.h"

namespace scankit {

enum class PolicyForm : std::uint8_t {
  Schema,   // the number of this file's form
  Word,     // one of `words`
  Flag,     // true, false
  Seconds,  // a whole number, from 1 to a day
  Date,     // 2027-01-31
  Text,     // a sentence
  Args,     // ["--module", "causal_conv1d_cuda"]
  Names,    // ["torch", "selective_scan_cuda"]: of modules or distributions
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
               std::vector<std::string> Owner::*>
      place;
};

const std::vector<PolicyField<Policy>>& policy_fields();
const std::vector<PolicyField<CauseRule>>& cause_fields();  // below causes.SLUG
const std::vector<PolicyField<StepRule>>& step_fields();    // below steps.NAME

// A step of a run. `options` are those that the policy's `args` may contain: options that change what is
// looked at. Where answers go is decided by the gate, and --import only by whoever runs it
// (ARCHITECTURE.md, decision 17).
struct PolicyStep {
  std::string_view name, command;  // "env_check", "env check"
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

}  // namespace scankit

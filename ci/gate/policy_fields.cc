// SPDX-License-Identifier: Apache-2.0
#include "ci/gate/policy_fields.h"

namespace scankit {

const std::vector<PolicyField<Policy>>& policy_fields() {
  static const std::vector<PolicyField<Policy>> fields = {
      {"schema",
       PolicyForm::Schema,
       {},
       "the form of this file; a scankit that knows only older ones says so",
       "1",
       &Policy::schema},
      {"fail_on",
       PolicyForm::Word,
       {"error", "warning", "note"},
       "severity from which a cause fails that is not named below",
       "error",
       &Policy::fail_on},
      {"allow_empty",
       PolicyForm::Flag,
       {},
       "true passes an environment in which there is nothing to check; otherwise that ends with status 4",
       "true",
       &Policy::allow_empty},
      {"require",
       PolicyForm::Names,
       {},
       "modules and packages that must be installed; one that is not fails the run",
       "[torch, selective_scan_cuda]",
       &Policy::required},
  };
  return fields;
}

const std::vector<PolicyField<CauseRule>>& cause_fields() {
  static const std::vector<PolicyField<CauseRule>> fields = {
      {"severity",
       PolicyForm::Word,
       {"error", "warning", "note"},
       "error (the default) fails, warning and note do not",
       "warning",
       &CauseRule::severity},
      {"allowed_until",
       PolicyForm::Date,
       {},
       "the last day, in UTC, on which it does not fail; it needs a reason",
       "2027-01-31",
       &CauseRule::allowed_until},
      {"reason",
       PolicyForm::Text,
       {},
       "why it is allowed, for who reads the report",
       "the images are replaced in January",
       &CauseRule::reason},
  };
  return fields;
}

const std::vector<PolicyField<StepRule>>& step_fields() {
  static const std::vector<PolicyField<StepRule>> fields = {
      {"enabled",
       PolicyForm::Flag,
       {},
       "false leaves it out; true has it fail where there is nothing to look at; without it, it runs where "
       "there is",
       "true",
       &StepRule::enabled},
      {"timeout", PolicyForm::Seconds, {}, "seconds, after which it is killed", "300", &StepRule::timeout_s},
      {"args",
       PolicyForm::Args,
       {},
       "options of that command that say what to look at",
       "[--module, causal_conv1d_cuda]",
       &StepRule::args},
  };
  return fields;
}

const std::vector<PolicyStep>& policy_steps() {
  static const std::vector<PolicyStep> steps = {
      {"doctor",
       "doctor",
       &Policy::doctor,
       300,
       {"--all", "--no-import", "--module", "--sources", "--timeout", "--root", "--so", "--from", "--gpu",
        "--driver", "--redact"}},
      {"env_check",
       "env check",
       &Policy::env_check,
       300,
       {"--spec", "--lock", "--cache-dir", "--root", "--from"}},
      {"validate",
       "validate",
       &Policy::validate,
       900,
       {"--module", "--against", "--baseline", "--quick", "--full", "--device", "--seed", "--case",
        "--deterministic", "--no-timing"}},
  };
  return steps;
}

}  // namespace scankit

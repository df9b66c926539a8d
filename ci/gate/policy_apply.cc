// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ci/gate/policy.h"
#include "doctor/base/say.h"
#include "doctor/checks/root_cause.h"

namespace scankit {
namespace {

Severity severity_of(const std::string& word) {
  return word == "error" ? Severity::Error : word == "warning" ? Severity::Warning : Severity::Note;
}

const CauseRule* rule_of(const Policy& policy, Cause cause) {
  const auto found = std::ranges::find(policy.causes, cause, &CauseRule::cause);
  return found == policy.causes.end() ? nullptr : &*found;
}

bool is_open(const CauseRule& rule, const std::string& today) { return today <= rule.allowed_until; }

// The findings of a report, each of which knows what it follows from.
class Applied {
 public:
  Applied(const Policy& policy, std::string today, std::vector<Finding> found)
      : policy_(policy), today_(std::move(today)), found_(std::move(found)) {}

  void to(Finding& finding) const {
    const CauseRule* rule = rule_of(policy_, finding.cause);
    if (rule != nullptr) return by_rule(*rule, finding);
    rule = rule_above(finding);
    if (rule != nullptr) return by_cause(*rule, finding);
    // From here on an error is what fails.
    if (finding.severity() >= severity_of(policy_.fail_on)) finding.severity_override = Severity::Error;
  }

 private:
  void by_rule(const CauseRule& rule, Finding& finding) const {
    // What the doctor itself lowered, a copy that nothing loads for instance, is no fault under any policy.
    const Severity wanted =
        std::min(severity_of(rule.severity), finding.severity_override.value_or(Severity::Error));
    if (rule.allowed_until.empty()) {
      finding.severity_override = wanted;
    } else if (is_open(rule, today_)) {
      finding.severity_override = Severity::Note;
      finding.summary = say("{} (allowed until {}: {})", finding.summary, rule.allowed_until, rule.reason);
    } else {
      finding.severity_override = wanted;
      finding.summary =
          say("{} (its allowance ended on {}: {})", finding.summary, rule.allowed_until, rule.reason);
      if (!finding.demanded_by) finding.demanded_by = FileLine{policy_.file, rule.line};
    }
  }

  // A symptom weighs no more than what it follows from.
  void by_cause(const CauseRule& rule, Finding& finding) const {
    finding.because_of = rule.cause;
    const bool allowed = !rule.allowed_until.empty() && is_open(rule, today_);
    const Severity most = allowed ? Severity::Note : severity_of(rule.severity);
    if (most < finding.severity()) finding.severity_override = most;
  }

  // The nearest cause above it that the policy names and that was found.
  const CauseRule* rule_above(const Finding& finding) const {
    const Finding* at = same(finding);
    for (std::size_t steps = 0; at != nullptr && at->because_of && steps < found_.size(); ++steps) {
      const auto above = std::ranges::find_if(found_, [&](const Finding& other) {
        return other.cause == *at->because_of && other.module == at->module;
      });
      if (above == found_.end()) return nullptr;
      if (const CauseRule* rule = rule_of(policy_, above->cause)) return rule;
      at = &*above;
    }
    return nullptr;
  }

  const Finding* same(const Finding& finding) const {
    const auto found = std::ranges::find_if(found_, [&](const Finding& other) {
      return other.cause == finding.cause && other.subject == finding.subject &&
             other.module == finding.module && other.summary == finding.summary;
    });
    return found == found_.end() ? nullptr : &*found;
  }

  const Policy& policy_;
  std::string today_;
  std::vector<Finding> found_;
};

// One that ended and has nothing left to allow is said, not failed: the environment is what it should be.
Outcome allowances(const Policy& policy, const std::string& today, const std::vector<Finding>& found) {
  Outcome outcome{.check = "policy-allowances",
                  .question = say("Is every allowance of the policy still open?")};
  for (const CauseRule& rule : policy.causes) {
    if (rule.allowed_until.empty() || is_open(rule, today)) continue;
    outcome.state = CheckState::Found;
    if (std::ranges::any_of(found, [&](const Finding& each) { return each.cause == rule.cause; })) continue;
    const std::string slug(info(rule.cause).slug);
    outcome.findings.push_back(
        {.cause = Cause::AllowanceExpired,
         .subject = policy.file,
         .module = "",
         .summary = say("{} was allowed until {} ({}), and nothing of it is found any more", slug,
                        rule.allowed_until, rule.reason),
         .fixes = {Advice{say("take {} out of {}", slug, policy.file)}},
         .demanded_by = FileLine{policy.file, rule.line}});
  }
  return outcome;
}

}  // namespace

void apply_policy(const Policy& policy, const std::string& today, Report& report) {
  decide_root_cause(report);  // a rule reaches the symptoms of its cause
  if (std::ranges::any_of(policy.causes, [](const CauseRule& rule) { return !rule.allowed_until.empty(); })) {
    report.outcomes.push_back(allowances(policy, today, report.findings));
  }
  const Applied applied(policy, today, report.findings);
  for (Outcome& outcome : report.outcomes)
    for (Finding& finding : outcome.findings) applied.to(finding);
  decide_root_cause(report);
}

}  // namespace scankit

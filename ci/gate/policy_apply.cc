// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "ci/gate/policy.h"
#include "doctor/base/say.h"
#include "doctor/checks/check.h"

// Gives every finding the severity that the policy wants. After that an error is what fails, for every
// output format and for the exit status.
namespace scankit::gate {
namespace {

Severity severity_of(const std::string& word) {
  return word == "error" ? Severity::Error : word == "warning" ? Severity::Warning : Severity::Note;
}

const CauseRule* rule_of(const Policy& policy, Cause cause) {
  const auto found = std::ranges::find(policy.causes, cause, &CauseRule::cause);
  return found == policy.causes.end() ? nullptr : &*found;
}

// ISO dates of one length compare as text. The last day is included.
bool is_open(const CauseRule& rule, const std::string& today) { return today <= rule.allowed_until; }

// The severity of a finding under the policy. Its own rule decides, else the nearest rule of a cause that it follows from,
// else fail_on. Nothing else in scankit changes the severity that the circumstances of a finding give it.
Severity severity_by_policy(const Policy& policy, const Finding& finding, const CauseRule* own,
                            const CauseRule* above, const std::string& today) {
  const CauseRule* rule = own != nullptr ? own : above;
  // From here on an error is what fails.
  if (rule == nullptr)
    return finding.severity() >= severity_of(policy.fail_on) ? Severity::Error : finding.severity();
  // An expired allowance leaves the severity of the rule.
  const bool allowed = !rule->allowed_until.empty() && is_open(*rule, today);
  const Severity wanted = allowed ? Severity::Note : severity_of(rule->severity);
  // What its circumstances make milder, a copy that nothing loads for instance, is no fault under any policy. A symptom
  // weighs no more than what it follows from.
  const Severity most =
      own != nullptr ? severity_under(finding.circumstances).value_or(Severity::Error) : finding.severity();
  return std::min(wanted, most);
}

// Applies the rules to single findings. It needs the findings of the whole report, in which each
// symptom knows its cause: a symptom of an allowed cause is allowed with it.
class Applied {
 public:
  Applied(const Policy& policy, std::string today, std::vector<Finding> found)
      : policy_(policy), today_(std::move(today)), found_(std::move(found)) {}

  void to(Finding& finding) const {
    const CauseRule* own = rule_of(policy_, finding.cause);
    const CauseRule* above = own == nullptr ? rule_above(finding) : nullptr;
    finding.policy_severity = severity_by_policy(policy_, finding, own, above, today_);
    if (own != nullptr && !own->allowed_until.empty()) show_allowance(*own, finding);
    if (above != nullptr) finding.because_of = above->cause;
  }

 private:
  void show_allowance(const CauseRule& rule, Finding& finding) const {
    if (is_open(rule, today_)) {
      finding.summary =
          message("{} (allowed until {}: {})", finding.summary, rule.allowed_until, rule.reason);
      return;
    }
    finding.summary =
        message("{} (its allowance expired on {}: {})", finding.summary, rule.allowed_until, rule.reason);
    if (!finding.demanded_by) finding.demanded_by = FileLine{policy_.file, rule.line};
  }

  // The rule of the nearest cause above this finding that the policy names and that was found. The number
  // of steps is bounded, so that a cycle of causes ends.
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

  // The copy of this finding that has `because_of`.
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

// Allowances that ended although their cause is not found any more. They are reported, and do not fail:
// the environment is as it should be, and the rule can be removed from the policy.
Outcome allowances(const Policy& policy, const std::string& today, const std::vector<Outcome>& outcomes) {
  Outcome outcome{.check = "policy-allowances",
                  .question = message("Are all allowances of the policy still valid?")};
  for (const CauseRule& rule : policy.causes) {
    if (rule.allowed_until.empty() || is_open(rule, today)) continue;
    outcome.state = CheckState::Found;
    if (std::ranges::any_of(outcomes, [&](const Outcome& each) {
          return std::ranges::find(each.findings, rule.cause, &Finding::cause) != each.findings.end();
        }))
      continue;
    const std::string slug(info(rule.cause).slug);
    outcome.findings.push_back({.cause = Cause::AllowanceExpired,
                                .subject = policy.file,
                                .module = "",
                                .summary = message("{} was allowed until {} ({}), and it is no longer found",
                                                   slug, rule.allowed_until, rule.reason),
                                .fixes = {Advice{message("remove {} from {}", slug, policy.file)}},
                                .demanded_by = FileLine{policy.file, rule.line}});
  }
  return outcome;
}

}  // namespace

// The causes are looked up with the severities of the checks, and the verdict is decided with those of the policy.
void apply_policy(const Policy& policy, const std::string& today, Report& report) {
  const Applied applied(policy, today, checks::linked_findings(report));
  if (std::ranges::any_of(policy.causes, [](const CauseRule& rule) { return !rule.allowed_until.empty(); }))
    report.outcomes.push_back(allowances(policy, today, report.outcomes));
  for (Outcome& outcome : report.outcomes)
    for (Finding& finding : outcome.findings) applied.to(finding);
  checks::decide_root_cause(report);
}

}  // namespace scankit::gate

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <tuple>

#include "doctor/checks/check.h"
#include "doctor/model/snapshot_variables.h"

namespace scankit::checks {
namespace {

struct Link {
  Cause symptom, cause;
};
constexpr std::array kLinks{
#define LINK(symptom, cause) Link{Cause::symptom, Cause::cause},
#include "doctor/checks/root_cause.def"
#undef LINK
};

constexpr std::array kRank{
#define RANK(cause) Cause::cause,
#include "doctor/checks/root_cause.def"
#undef RANK
};

struct Origin {
  Circumstance circumstance;
  Cause cause;
};
constexpr std::array kOrigins{
#define FOLLOWS(circumstance, cause) Origin{Circumstance::circumstance, Cause::cause},
#include "doctor/checks/root_cause.def"
#undef FOLLOWS
};

std::size_t rank(Cause cause) {
  return static_cast<std::size_t>(std::ranges::find(kRank, cause) - kRank.begin());
}

bool is_error(const Finding& finding) { return finding.severity() == Severity::Error; }

// The cause that a circumstance of the symptom names, if `present(cause)`.
template <class Present>
std::optional<Cause> origin_of(const Finding& symptom, const Present& present) {
  for (const Origin& origin : kOrigins)
    if (has(symptom.circumstances, origin.circumstance) && present(origin.cause)) return origin.cause;
  return std::nullopt;
}

// The cause among `others` that `symptom` is a sign of.
std::optional<Cause> cause_of(const Finding& symptom, const std::vector<Finding>& others) {
  const auto present = [&](Cause cause) {
    return cause != symptom.cause && std::ranges::any_of(others, [&](const Finding& other) {
             return other.cause == cause && other.module == symptom.module && is_error(other);
           });
  };
  if (const auto origin = origin_of(symptom, present)) return origin;
  // Decided before: by the report that was read back, or by a policy that lowers a symptom with its cause.
  if (symptom.because_of && present(*symptom.because_of)) return symptom.because_of;
  for (const Link& link : kLinks)
    if (link.symptom == symptom.cause && present(link.cause)) return link.cause;
  // A name that became None, and a slow way taken, show that an import failed: for each reason that stands
  // before those of mere calls.
  const bool masked = symptom.cause == Cause::SilentNoneCausalConv1d || symptom.cause == Cause::SpeedSlowPath;
  if (symptom.cause == Cause::ImportCrash || masked) {
    for (const Cause cause : kRank) {
      if (masked && rank(cause) >= rank(Cause::SignatureMismatch)) break;
      if (present(cause)) return cause;
    }
  } else if (present(Cause::SeveralCopies)) {
    return Cause::SeveralCopies;
  }
  return std::nullopt;
}

std::size_t module_order(const Snapshot& snapshot, const std::string& module) {
  if (module == "python" || module == "torch") return 0;
  const auto& modules = snapshot.modules;
  return 1 + static_cast<std::size_t>(std::ranges::find(modules, module) - modules.begin());
}

void append_with_symptoms(const std::vector<Finding>& all, std::size_t at, std::vector<bool>& placed,
                          std::vector<Finding>& ordered) {
  if (placed[at]) return;
  placed[at] = true;
  ordered.push_back(all[at]);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].because_of == all[at].cause && all[i].module == all[at].module)
      append_with_symptoms(all, i, placed, ordered);
}

// Whether the finding is the error that ended the log, and nothing else is wrong with its module. It comes
// first: a stale module of the same environment is another matter than the build that has just failed.
bool ended_the_log(const Report& report, const Finding& finding, const std::vector<Finding>& all) {
  const Log& log = report.snapshot.log.value;
  if (log.hits.empty() || log.hits.front().role != "root" || !is_error(finding)) return false;
  const bool from_log = std::ranges::any_of(finding.evidence, [](const Evidence& evidence) {
    return evidence.fact.starts_with("/log/value/hits/0/");
  });
  return from_log && std::ranges::none_of(all, [&](const Finding& other) {
           return other.cause != finding.cause && other.module == finding.module && is_error(other);
         });
}

// A gate all of whose steps were left out.
bool no_step_ran(const Report& report) {
  const auto is_step = [](const Outcome& outcome) { return outcome.check.starts_with("step-"); };
  return report.asked == Asked::Gate && std::ranges::any_of(report.outcomes, is_step) &&
         std::ranges::none_of(report.outcomes, [&](const Outcome& outcome) {
           return is_step(outcome) && outcome.state != CheckState::NotApplicable;
         });
}

Verdict verdict(const Report& report) {
  if (std::ranges::any_of(report.findings, is_error)) return Verdict::Broken;
  // Nothing of it was looked at, whatever a policy makes of the finding that says so.
  if (report.snapshot.broken_environment) return Verdict::Unknown;
  const bool hidden = std::ranges::any_of(report.outcomes, &Outcome::could_hide_error);
  if (hidden) return Verdict::Unknown;
  const bool empty =
      report.asked != Asked::Drift && (no_step_ran(report) || nothing_to_check(report.snapshot));
  return empty ? Verdict::Empty : Verdict::Healthy;
}

}  // namespace

std::vector<Finding> linked_findings(const Report& report) {
  std::vector<Finding> all;
  for (const Outcome& outcome : report.outcomes)
    all.insert(all.end(), outcome.findings.begin(), outcome.findings.end());
  for (Finding& finding : all) {
    const auto found = [&](Cause cause) {
      return std::ranges::any_of(
          all, [&](const Finding& other) { return other.cause == cause && other.module == finding.module; });
    };
    if (is_error(finding) || finding.cause == Cause::SpeedSlowPath)
      finding.because_of = cause_of(finding, all);
    else if (!finding.because_of)
      finding.because_of = origin_of(finding, found);
  }

  const std::vector<Finding> unordered = all;
  const auto key = [&](const Finding& finding) {
    return std::tuple(-static_cast<int>(finding.severity()), !ended_the_log(report, finding, unordered),
                      module_order(report.snapshot, finding.module), rank(finding.cause));
  };
  std::ranges::stable_sort(all, {}, key);
  return all;
}

void decide_root_cause(Report& report) {
  const std::vector<Finding> all = linked_findings(report);
  std::vector<bool> placed(all.size(), false);
  report.findings.clear();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!all[i].because_of) append_with_symptoms(all, i, placed, report.findings);
  for (std::size_t i = 0; i < all.size(); ++i) append_with_symptoms(all, i, placed, report.findings);
  report.verdict = verdict(report);
}

}  // namespace scankit::checks

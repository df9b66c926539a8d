// SPDX-License-Identifier: Apache-2.0
#include "doctor/model/finding.h"

#include <algorithm>

namespace scankit {

const std::vector<CauseInfo>& all_causes() {
  static const std::vector<CauseInfo> causes = {
#define CAUSE(id, slug, severity, title, next_step) {Cause::id, slug, Severity::severity, title, next_step},
#include "doctor/model/causes.def"
#undef CAUSE
  };
  return causes;
}

const CauseInfo& info(Cause cause) { return all_causes()[static_cast<std::size_t>(cause)]; }

AtFault at_fault(Cause cause) {
  switch (cause) {
#define AT_FAULT(id, who) \
  case Cause::id:         \
    return AtFault::Of##who;
#include "doctor/model/at_fault.def"
#undef AT_FAULT
    default:
      return AtFault::OfEnvironment;
  }
}

std::optional<Cause> cause_from_slug(std::string_view slug) {
  const auto& causes = all_causes();
  const auto found = std::ranges::find(causes, slug, &CauseInfo::slug);
  if (found == causes.end()) return std::nullopt;
  return found->cause;
}

const Finding* root(const Report& report) {
  const auto found = std::ranges::find_if(report.findings, [](const Finding& finding) {
    return finding.severity() == Severity::Error && !finding.because_of;
  });
  return found == report.findings.end() ? nullptr : &*found;
}

Tally tally(const Report& report) {
  Tally tally;
  for (const Finding& finding : report.findings) {
    if (finding.severity() == Severity::Error) ++tally.errors;
    if (finding.severity() == Severity::Warning) ++tally.warnings;
    if (finding.severity() == Severity::Note) ++tally.notes;
  }
  for (const Outcome& outcome : report.outcomes) {
    if (outcome.state == CheckState::Passed) ++tally.passed;
    if (outcome.state == CheckState::NotApplicable && !outcome.not_asked) ++tally.not_applicable;
    if (outcome.state == CheckState::Unknown) ++tally.unknown;
    if (outcome.state == CheckState::Crashed) ++tally.crashed;
  }
  return tally;
}

namespace {

struct CircumstanceRow {
  Circumstance circumstance;
  std::optional<Severity> severity;
};

// In the order of their weight.
const std::vector<CircumstanceRow>& circumstance_rows() {
  constexpr std::optional<Severity> Note = Severity::Note, Warning = Severity::Warning,
                                    Error = Severity::Error, Usual = std::nullopt;
  static const std::vector<CircumstanceRow> rows = {
#define CIRCUMSTANCE(id, severity) {Circumstance::id, severity},
#include "doctor/model/circumstances.def"
#undef CIRCUMSTANCE
  };
  return rows;
}

}  // namespace

bool has(const Circumstances& circumstances, Circumstance wanted) {
  return std::ranges::find(circumstances, wanted) != circumstances.end();
}

std::optional<Severity> severity_under(const Circumstances& circumstances) {
  for (const CircumstanceRow& row : circumstance_rows())
    if (row.severity && has(circumstances, row.circumstance)) return row.severity;
  return std::nullopt;
}

// A CI policy decides before the circumstances, and they before the catalogue of causes.
Severity Finding::severity() const {
  if (policy_severity) return *policy_severity;
  return severity_under(circumstances).value_or(info(cause).severity);
}

}  // namespace scankit

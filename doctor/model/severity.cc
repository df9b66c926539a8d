// SPDX-License-Identifier: Apache-2.0
#include "doctor/model/severity.h"

#include <algorithm>

#include "doctor/model/finding.h"

namespace scankit {
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

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "doctor/model/finding.h"

// One place decides what a set of findings means: which of them is the cause of the others, in which order people deal with
// them, and what the verdict is. Checks say what is wrong with one statement, reconcile() weighs that against the imports that
// were attempted, join_log() against an error log; this function reads their outcomes and nothing else. Renderers print it.
namespace scankit {

// Fills report.findings (each symptom behind its cause, the root first) and report.verdict from report.outcomes and the
// snapshot. Repeatable: whoever adds, removes or weighs outcomes afterwards (a policy, a selection of modules) calls it again.
// No check sets `because_of`: it is decided here, by root_cause.def. One that was decided before is kept
// where that cause is still an error: that of a report that was read back, and of a symptom that a policy lowered.
void decide_root_cause(Report& report);

// The first half of it: the findings of all outcomes, the gravest first, each with the cause that it follows from. For
// apply_policy(), whose rules reach the symptoms of a cause before they change severities.
std::vector<Finding> linked_findings(const Report& report);

}  // namespace scankit

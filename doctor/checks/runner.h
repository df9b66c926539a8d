// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "doctor/model/finding.h"

namespace scankit {

struct Check;

// Every check over the snapshot, weighed against the observed imports. Neither folds nor orders:
// report/fold.h does.
Report diagnose(Snapshot snapshot);

// The steps of diagnose().
Outcome run_check(const Check& check, const Snapshot& snapshot);
void reconcile(Report& report);
void join_log(Report& report);  // one finding where the log and the facts name the same cause

}  // namespace scankit

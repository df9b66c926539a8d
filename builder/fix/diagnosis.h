// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "doctor/host/host.h"
#include "doctor/model/finding.h"

namespace scankit {

// What to diagnose: the same before a fix and after it, or the two reports could not be compared.
struct DiagnosisRequest {
  std::string python;
  std::vector<std::string> modules;  // that the user named; empty: what is installed or needed
  bool after_a_fix = false;          // give an import as long as the verification gave it
};

// What `scankit doctor` would say, with really imported modules. If no module is named, every
// extension that uses torch is read as well.
Report diagnose_environment(const Host& host, const DiagnosisRequest& request);

// The facts that can be read from files, without an import: cheap enough between the steps of a fix.
Snapshot facts_of_environment(const Host& host, const DiagnosisRequest& request);

}  // namespace scankit

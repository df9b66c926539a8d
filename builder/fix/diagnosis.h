// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "doctor/host/host.h"
#include "doctor/model/finding.h"

namespace scankit {

struct DiagnosisRequest {
  std::string python;
  std::vector<std::string> modules;  // that the user named; empty: what is installed or needed
  bool after_a_fix = false;          // an import that was just seen to work gets as long as then
};

// What `scankit doctor` would say. Where no module is
// named, every extension that uses torch is read, too.
Report diagnose_environment(const Host& host, const DiagnosisRequest& request);

// The files alone.
Snapshot facts_of_environment(const Host& host, const DiagnosisRequest& request);

}  // namespace scankit

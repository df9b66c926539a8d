// SPDX-License-Identifier: Apache-2.0
#include "builder/fix/diagnosis.h"

#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/checks/check.h"
#include "doctor/checks/root_cause.h"
#include "doctor/checks/snapshot_queries.h"
#include "doctor/logs/explainer.h"
#include "doctor/probes/imports/observed.h"
#include "doctor/probes/snapshot.h"
#include "doctor/report/progress.h"

namespace scankit {
namespace {

// A snapshot with observed imports. Facts are stored in English, whatever the user's language.
Snapshot observed_snapshot(const Host& host, const DiagnosisRequest& asked) {
  const Speaking facts_are_english(nullptr);
  Progress progress;
  SnapshotRequest request;
  request.python = asked.python;
  request.modules = asked.modules;
  request.ask_nvml = true;
  request.audit = asked.modules.empty();  // what a fix leaves broken is to be named, whoever made it
  request.progress = [&](const std::string& phase) { progress.now(phase); };
  Snapshot snapshot = take_snapshot(host, request);
  ObserveRequest observe;
  observe.can_be_asked_for = false;  // a fix ends in the import that proves it: nothing to opt into
  if (asked.after_a_fix) observe.timeout = std::chrono::minutes(5);
  observe.running = [&](const std::string& what, auto since, auto limit) {
    progress.now(what, limit, since);
  };
  snapshot.observations = observe_imports(host, snapshot, observe);
  read_observations(snapshot);
  return snapshot;
}

// Of the extensions of all packages, keeps findings about those that use torch. The others are not scankit's
// business, and the doctor does not mention them unless it is asked to.
void keep_torch_extensions(Report& report) {
  const auto about_torch = [&](const Finding& finding) {
    return std::ranges::any_of(report.snapshot.audit.value.files, [&](const AuditedFile& file) {
      return file.path == finding.subject && file.uses_torch;
    });
  };
  for (Outcome& outcome : report.outcomes) {
    if (outcome.check != "every-extension-loads") continue;
    std::erase_if(outcome.findings, [&](const Finding& finding) { return !about_torch(finding); });
    if (outcome.findings.empty() && outcome.state == CheckState::Found) outcome.state = CheckState::Passed;
    outcome.could_hide_error = false;
  }
}

}  // namespace

Snapshot facts_of_environment(const Host& host, const DiagnosisRequest& request) {
  const Speaking facts_are_english(nullptr);
  SnapshotRequest files;
  files.python = request.python;
  files.modules = request.modules;
  return take_snapshot(host, files);
}

Report diagnose_environment(const Host& host, const DiagnosisRequest& request) {
  Report report = diagnose(observed_snapshot(host, request));
  keep_torch_extensions(report);
  decide_root_cause(report);
  return report;
}

}  // namespace scankit

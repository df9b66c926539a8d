// SPDX-License-Identifier: Apache-2.0
#include "builder/install/diagnosis.h"

#include <algorithm>

#include "builder/shipped.h"
#include "doctor/base/say.h"
#include "doctor/checks/runner.h"
#include "doctor/checks/view.h"
#include "doctor/probes/observed.h"
#include "doctor/probes/snapshot.h"
#include "doctor/report/fold.h"
#include "doctor/report/progress.h"

namespace scankit {
namespace {

Snapshot observed_snapshot(const Host& host, const DiagnosisRequest& asked) {
  const Speaking facts_are_english(nullptr);
  Progress progress;
  SnapshotRequest request;
  request.python = asked.python;
  request.modules = asked.modules;
  request.ask_nvml = true;
  request.progress = [&](const std::string& phase) { progress.now(phase); };
  Snapshot snapshot = take_snapshot(host, request);
  ObserveRequest observe;
  observe.can_be_asked_for = false;  // a fix ends in the import that proves it: nothing to opt into
  observe.running = [&](const std::string& what, auto since, auto limit) {
    progress.now(what, limit, since);
  };
  snapshot.observations = observe_imports(host, snapshot, observe);
  return snapshot;
}

bool nothing_to_go_by(const Report& report) {
  const Snapshot& snapshot = report.snapshot;
  return snapshot.modules_asked.empty() && root(report) == nullptr && selected_copies(snapshot).empty();
}

// Where nobody named one: what files of the current folder import, of which the doctor makes a note alone (a
// clone of mamba's repository, say), else what scankit is mostly asked for.
std::vector<std::string> meant_modules(const Snapshot& snapshot) {
  std::vector<std::string> meant;
  for (const ShippedModule& module : shipped_modules())
    if (!needing_importers(snapshot, module.name).empty()) meant.push_back(module.name);
  if (meant.empty()) meant = {shipped_modules().front().name};
  return meant;
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
  const auto judged = [](Snapshot snapshot) {
    Report report = diagnose(std::move(snapshot));
    fold(report);
    return report;
  };
  Report report = judged(observed_snapshot(host, request));
  if (!request.modules.empty() || !nothing_to_go_by(report)) return report;
  Snapshot snapshot = std::move(report.snapshot);
  snapshot.modules_asked = meant_modules(snapshot);
  return judged(std::move(snapshot));
}

}  // namespace scankit

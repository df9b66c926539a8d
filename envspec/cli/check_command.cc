// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <optional>

#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "doctor/checks/root_cause.h"
#include "doctor/cli/commands.h"
#include "doctor/model/redact.h"
#include "doctor/report/doctor_document.h"
#include "envspec/check/check.h"
#include "envspec/cli/commands.h"
#include "envspec/lock/lock.h"
#include "envspec/lock/lock_drift.h"

// `scankit env check`: one report over a spec, a lock, or both.
namespace scankit {
namespace {

// What the environment is compared with; at least one of the two is set.
struct Demands {
  std::optional<Spec> spec;
  std::string lock;  // the file; "" for none
  std::string cache_dir;
};

// Both files are read before the environment is looked at, so that a typing error costs no time.
Result<Demands> read_demands(const EnvCheckOptions& options) {
  Demands demands;
  demands.cache_dir = options.cache_dir;
  demands.lock = options.lock;
  const auto is_here = [](const char* file) { return ::access(file, F_OK) == 0; };
  // Without options, both files of the current directory count. Where the user names one file, only that
  // one does; a spec that is missing is an error unless there is a lock.
  if (options.lock.empty() && options.spec.empty() && is_here(kLockFile)) demands.lock = kLockFile;
  if (!options.spec.empty() || demands.lock.empty() || (options.lock.empty() && is_here(kSpecFile))) {
    SCANKIT_TRY(demands.spec, read_spec(options.spec.empty() ? kSpecFile : options.spec));
  }
  if (!demands.lock.empty()) {
    SCANKIT_TRY(const EnvironmentLock lock, read_lock(demands.lock));
  }
  return demands;
}

Outcome nothing_demanded(const Spec& spec) {
  // What demands nothing is met by everything: that is no proof of anything.
  Outcome outcome = asked("spec-demands", say("Does the spec require anything?"));
  not_known(outcome, say("{} contains nothing that could be compared", spec.file));
  return outcome;
}

Report judged(const Demands& demands, const Subject& subject) {
  Report report;
  report.asked = Asked::Drift;
  report.snapshot = subject.snapshot;
  if (demands.spec) {
    report.compared_with.emplace_back("spec", demands.spec->file);
    report.outcomes = check_spec(*demands.spec, subject.snapshot, subject.facts);
    if (report.outcomes.empty()) report.outcomes.push_back(nothing_demanded(*demands.spec));
  }
  if (!demands.lock.empty()) {
    report.compared_with.emplace_back("lock", demands.lock);
    auto locked = check_lock({demands.lock, demands.cache_dir}, subject);
    if (!locked) {  // it was read a moment ago
      Outcome outcome = asked("lock-files", message("Is every compiled file the locked one?"));
      not_known(outcome, locked.error().message);
      locked = std::vector<Outcome>{std::move(outcome)};
    }
    std::ranges::move(*locked, std::back_inserter(report.outcomes));
  }
  decide_root_cause(report);
  return report;
}

// Adds the hint that helps a first-time user.
Error no_spec(const Error& error) {
  if (error.code != Errc::NotFound || !error.hint.empty()) return error;
  return {error.code, error.message, message("scankit env init writes one; --spec selects another")};
}

}  // namespace

int run_env_check(const EnvCheckOptions& options) {
  const auto demands = read_demands(options);
  if (!demands) {
    report_error(no_spec(demands.error()));
    return kExitUsage;
  }
  SubjectOptions asked_for = options.subject;
  // The extensions that the spec demands are looked for by name, in addition to those that scankit knows.
  if (demands->spec)
    for (const ExtensionSpec& extension : demands->spec->extensions)
      asked_for.modules.push_back(extension.module);
  const auto subject = look_at(asked_for);
  if (!subject) {
    report_error(subject.error());
    return subject.error().code == Errc::ToolFailed ? kExitFindings : kExitUsage;
  }
  // Judged with the real names and redacted afterwards, since the lock's files are looked up by them.
  Report report = judged(*demands, *subject);
  if (options.redact) report = redacted(std::move(report), own_names());
  const int found = exit_status_of(report, options.show.fail_on, kExitDrift);
  const int shown = show(doctor_views(report, first_that_counts({subject->status, found})), options.show,
                         options.redact ? std::vector<Message>() : subject->notes);
  return first_that_counts({subject->status, shown, found});
}

}  // namespace scankit

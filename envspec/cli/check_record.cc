// SPDX-License-Identifier: Apache-2.0
#include "builder/compile/cache.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/checks/check.h"
#include "doctor/cli/commands.h"
#include "doctor/model/redact.h"
#include "doctor/report/doctor_document.h"
#include "envspec/cli/commands.h"
#include "envspec/create/create.h"

// `scankit env check --record DIR`: what was recorded, against what is there now. No file is read.
namespace scankit::envspec {
namespace {

// Whether the record is of this lock; nothing is asked without one.
Outcome recorded_lock(const EnvironmentRecord& record, const std::string& lock_file) {
  Outcome outcome = asked("record-lock", message("Was the environment made from this lock?"));
  const auto lock = read_lock(lock_file);
  if (!lock) {
    not_known(outcome, lock.error().message);
    return outcome;
  }
  if (hash_of(*lock) == record.lock_sha256) return outcome;
  Finding finding;
  finding.cause = Cause::DriftLockFile;
  finding.subject = lock_file;
  finding.summary = message("the environment was made from another lock than {}", lock_file);
  finding.demanded_by = FileLine{lock_file, 0};
  drifted(outcome, std::move(finding));
  return outcome;
}

Finding changed_file(const RecordChange& change, const std::string& file) {
  Finding finding;
  finding.cause = Cause::DriftLockFile;
  finding.summary = change.kind == RecordChange::Kind::FileMissing
                        ? message("{} is missing, and {} lists it", change.name, file)
                        : message("{} has another size or time than {} says", change.name, file);
  return finding;
}

Finding changed_package(const RecordChange& change, const std::string& file) {
  Finding finding;
  finding.cause = change.kind == RecordChange::Kind::PackageAdded ? Cause::DriftLockPackageExtra
                                                                  : Cause::DriftLockPackage;
  const std::string& name = change.name;
  if (change.kind == RecordChange::Kind::PackageAdded)
    finding.summary = message("{} {} is installed but is not in {}", name, change.found, file);
  else if (change.kind == RecordChange::Kind::PackageMissing)
    finding.summary = message("{} records {} {}, which is not installed", file, name, change.recorded);
  else if (change.kind == RecordChange::Kind::PackageReinstalled)
    finding.summary = message("{} {} was installed again after {} was written", name, change.recorded, file);
  else
    finding.summary =
        message("{} records {} {}, but {} is installed", file, name, change.recorded, change.found);
  if (is_installers_own(name)) finding.circumstances = {Circumstance::InstallersOwnPackage};
  return finding;
}

// Two questions: the compiled files, and the packages. A record without packages is of an older scankit where
// it has hashes of their content.
std::vector<Outcome> recorded_state(const std::string& folder, const EnvironmentRecord& record) {
  Outcome files = asked("record-files", message("Is every compiled file the one that was recorded?"));
  Outcome packages = asked("record-packages", message("Is every package the one that was recorded?"));
  const std::string file = path_join(folder, kRecordFile);
  const auto changes = changes_since(folder, record);
  if (!changes) {
    for (Outcome* outcome : {&packages, &files}) not_known(*outcome, changes.error().message);
  } else if (record.packages.empty() && !record.content.empty()) {
    left_out(packages, message("{} is of an older scankit, which did not record them", file));
  } else if (record.packages.empty()) {
    not_known(packages, message("{} lists no package", file));
  }
  for (const RecordChange& change : changes.value_or({})) {
    const bool of_file =
        change.kind == RecordChange::Kind::FileChanged || change.kind == RecordChange::Kind::FileMissing;
    Finding finding = of_file ? changed_file(change, file) : changed_package(change, file);
    finding.subject = change.name;
    finding.demanded_by = FileLine{file, 0};
    drifted(of_file ? files : packages, std::move(finding));
  }
  return {std::move(packages), std::move(files)};
}

}  // namespace

int run_env_check_record(const EnvCheckOptions& options) {
  const auto record = read_record(path_join(current_directory(), options.record));
  if (!record) {
    cli::report_error(record.error());
    return kExitUsage;
  }
  Report report;
  report.asked = Asked::Drift;
  report.compared_with.emplace_back("record", path_join(options.record, kRecordFile));
  report.outcomes = recorded_state(options.record, *record);
  const std::string lock = options.lock.empty() && is_a_file(kLockFile) ? kLockFile : options.lock;
  if (!lock.empty()) {
    report.compared_with.emplace_back("lock", lock);
    report.outcomes.push_back(recorded_lock(*record, lock));
  }
  checks::decide_root_cause(report);
  if (options.redact) report = redacted(std::move(report), own_names());
  const int found = cli::exit_status_of(report, options.show.fail_on, kExitDrift);
  return cli::first_that_counts({cli::show(report::doctor_views(report, found), options.show), found});
}

}  // namespace scankit::envspec

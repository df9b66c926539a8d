// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <optional>

#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/checks/check.h"
#include "doctor/cli/commands.h"
#include "doctor/model/redact.h"
#include "doctor/model/snapshot.h"
#include "doctor/report/doctor_document.h"
#include "doctor/report/progress.h"
#include "envspec/check/check.h"
#include "envspec/cli/commands.h"
#include "envspec/diff/diff.h"
#include "envspec/lock/lock.h"
#include "envspec/spec/derive.h"
#include "envspec/spec/fields.h"

// `scankit env schema`, `init`, `diff` and `check`.
namespace scankit::envspec {
namespace {

constexpr const char* kSchemaFile = "scankit.schema.json";  // beside the spec

int print(const std::string& text) {
  std::cout << text;
  return kExitClean;
}

// lstat, so that a dangling symbolic link also counts: writing would follow it.
bool is_there(const std::string& path) { return make_real_host()->lstat(path).has_value(); }

}  // namespace

bool is_a_file(const std::string& path) {
  return make_real_host()->exists(path_join(current_directory(), path));
}

Result<void> may_write_spec(const std::string& path, bool force) {
  if (force || !is_there(path_normalize(path_join(current_directory(), path)))) return {};
  return Error{Errc::InvalidArgument, message("{} already exists, and nothing was written", path),
               message("--force overwrites it")};
}

// The schema first: a spec must not name a file that could not be written.
Result<void> write_spec(const DerivedSpec& derived, const std::string& path) {
  const std::string schema = path_join(path_dirname(path), kSchemaFile);
  SCANKIT_CHECK(write_output(schema, spec_schema()));
  return write_output(path, spec_to_yaml(derived.spec, derived.notes, kSchemaFile));
}

int run_env_schema() { return print(spec_schema()); }

int run_env_init(const EnvInitOptions& options) {
  const std::string out = options.out.empty() ? kSpecFile : options.out;
  const std::string path = path_normalize(path_join(current_directory(), out));
  // Asked before the environment is looked at, which takes longer.
  if (const auto may = may_write_spec(out, options.force); out != "-" && !may) {
    cli::report_error(Error{may.error().code, may.error().message,
                            message("--force overwrites it, --out FILE writes another file")});
    return kExitUsage;
  }
  SubjectOptions asked = options.subject;
  asked.find_extensions = true;
  auto subject = look_at(asked);
  if (!subject) {
    cli::report_error(subject.error());
    return subject.error().code == Errc::ToolFailed ? kExitFindings : kExitUsage;
  }
  if (subject->status != kExitClean) return subject->status;
  if (!subject->snapshot.python.present()) {
    cli::report_error({Errc::NotFound,
                       message("no environment to describe: {}", why_missing(subject->snapshot.python)),
                       message("choose one with --python")});
    return kExitUsage;
  }
  const DerivedSpec derived = derive_spec(subject->facts);
  if (out == "-") return print(spec_to_yaml(derived.spec, derived.notes, ""));
  if (const auto written = write_spec(derived, path); !written) {
    cli::report_error(written.error());
    return cli::exit_status_of(written.error());
  }
  for (const Message& note : subject->notes) report::progress_note(tr(note));
  report::progress_note(say("wrote {}, and next to it {} for editors", out, kSchemaFile));
  report::progress_note(
      say("edit it, keep both with your sources, and run scankit env check to see whether an environment "
          "differs"));
  return kExitClean;
}

// The files of an environment are hashed only if the other side is a lock or a record, which have hashes
// to compare them with.
int run_env_diff(const EnvDiffOptions& options) {
  auto left = read_operand(options.left);
  auto right = left ? read_operand(options.right) : left;
  if (!right) {
    cli::report_error(right.error());
    return kExitUsage;
  }
  const auto has_hashes = [](const Side& side) { return side.kind == "lock" || side.kind == "record"; };
  if (has_hashes(*left)) put_files(*right, options.cache_dir);
  if (has_hashes(*right)) put_files(*left, options.cache_dir);
  auto all = differences(*left, *right);
  if (options.redact) redact(own_names(), *left, *right, all);
  if (options.json)
    std::cout << diff_json(*left, *right, all);
  else
    std::cout << diff_text(*left, *right, all);
  const bool differ = std::ranges::any_of(all, [](const Difference& one) { return one.why_unknown.empty(); });
  if (differ) return kExitDrift;
  return all.empty() ? kExitClean : kExitInconclusive;
}

// `scankit env check`: one report over a spec, a lock, or both.

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
  checks::decide_root_cause(report);
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
    cli::report_error(no_spec(demands.error()));
    return kExitUsage;
  }
  SubjectOptions asked_for = options.subject;
  // The extensions that the spec demands are looked for by name, in addition to those that scankit knows.
  if (demands->spec)
    for (const ExtensionSpec& extension : demands->spec->extensions)
      asked_for.modules.push_back(extension.module);
  const auto subject = look_at(asked_for);
  if (!subject) {
    cli::report_error(subject.error());
    return subject.error().code == Errc::ToolFailed ? kExitFindings : kExitUsage;
  }
  // Judged with the real names and redacted afterwards, since the lock's files are looked up by them.
  Report report = judged(*demands, *subject);
  if (options.redact) report = redacted(std::move(report), own_names());
  const int found = cli::exit_status_of(report, options.show.fail_on, kExitDrift);
  const int shown = cli::show(report::doctor_views(report, cli::first_that_counts({subject->status, found})),
                              options.show, options.redact ? std::vector<Message>() : subject->notes);
  return cli::first_that_counts({subject->status, shown, found});
}

}  // namespace scankit::envspec

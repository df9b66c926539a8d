// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/tool_version.h"
#include "doctor/checks/check.h"
#include "doctor/cli/commands.h"
#include "doctor/cli/reports.h"
#include "doctor/logs/explainer.h"
#include "doctor/matrix/matrix.h"
#include "doctor/matrix/places.h"
#include "doctor/model/redact.h"
#include "doctor/model/snapshot.h"
#include "doctor/probes/packages/repairs.h"
#include "doctor/probes/packages/requirements.h"
#include "doctor/probes/python/python.h"
#include "doctor/report/doctor_document.h"
#include "doctor/report/escape.h"

namespace scankit::cli {
namespace {

// The facts to judge, from where the options say. A log alone looks at nothing of this machine: it may
// come from another one.
Result<Facts> facts_for(const DoctorOptions& options) {
  Facts facts;
  if (options.from == "-" && options.log == "-")
    return Error{Errc::InvalidArgument, message("--from and --log cannot both read standard input"),
                 message("give a file")};
  if (!options.from.empty()) {
    SCANKIT_TRY(facts.snapshot, stored_snapshot(options.from));
    facts.snapshot.read_from = options.from;
    set_requirements(facts.snapshot, probes::required_in(facts.snapshot, options.environment.required));
    if (!options.environment.so.empty())
      SCANKIT_CHECK(join_named_files(options.environment.so, facts.snapshot));
  } else if (options.log.empty()) {
    EnvironmentOptions wanted = options.environment;
    wanted.gpu_details = options.show.verbose || !options.snapshot.empty();
    SCANKIT_TRY(facts, gather(wanted));
    // Files that --so names are examined under whatever name, so no module name can be wrong.
    if (const auto wrong = meaningless_module(facts.snapshot); wrong && options.environment.so.empty())
      return *wrong;
  } else {
    facts.snapshot.tool_version = kToolVersion;
  }
  if (!options.log.empty()) {
    Log log;
    SCANKIT_TRY(log, logs::explain_log(options.log));
    log.alone = options.from.empty();
    facts.snapshot.log = Probed<Log>::of(std::move(log));
  }
  return facts;
}

// Writes what a later --from reads: the facts as they were judged, with the imports that were observed.
// Returns an exit status.
int write_snapshot(const Snapshot& facts, const std::string& path) {
  if (path.empty()) return kExitClean;
  const auto written = write_output(path, snapshot_to_json(facts));
  if (written) return kExitClean;
  report_error(written.error());
  return exit_status_of(written.error());
}

}  // namespace

// The precedence of exit_status.h for the statuses that these commands use.
int first_that_counts(std::initializer_list<int> statuses) {
  for (const int wanted : {kExitInternal, kExitUsage, kExitFindings, kExitDrift, kExitInconclusive})
    for (const int status : statuses)
      if (status == wanted) return status;
  return kExitClean;
}

int exit_status_of(const Report& report, const std::string& fail_on, int found, bool allow_empty) {
  const Tally n = tally(report);
  // A check that crashed is a bug of scankit and outranks what the others have found.
  if (n.crashed > 0) return kExitInternal;
  std::size_t counted = 0;
  if (fail_on != "never") counted += n.errors;
  if (fail_on == "warning" || fail_on == "note") counted += n.warnings;
  if (fail_on == "note") counted += n.notes;
  if (counted > 0) return found;
  const bool empty = report.verdict == Verdict::Empty && !allow_empty;
  return empty || report.verdict == Verdict::Unknown ? kExitInconclusive : kExitClean;
}

Result<Diagnosis> diagnosis_for(const DoctorOptions& given) {
  DoctorOptions options = given;
  // --root must be an unpacked image; its own links are resolved once, before anything is
  // opened below it.
  if (!options.environment.root.empty()) {
    SCANKIT_TRY(options.environment.root, probes::root_folder(options.environment.root));
  }
  SCANKIT_TRY(Facts facts, facts_for(options));
  // Redaction comes before judgement, so that no text of a finding can contain what was removed.
  if (options.environment.redact) {
    facts.snapshot = redacted(facts.snapshot, own_names());
    facts.notes.clear();  // they name the Pythons of this user
  }
  // After redaction: a described GPU or driver is the user's own input.
  probes::describe_target(options.target, facts.snapshot);
  logs::read_observations(facts.snapshot);
  Diagnosis made{.report = checks::diagnose(std::move(facts.snapshot)),
                 .notes = std::move(facts.notes),
                 .abandoned = facts.abandoned};
  const int findings = exit_status_of(made.report, options.show.fail_on, kExitFindings, options.allow_empty);
  made.status = first_that_counts({facts.status, findings});
  return made;
}

int leave(int status, bool abandoned) {
  if (abandoned) {
    std::cout.flush();
    ::_exit(status);
  }
  return status;
}

int run_doctor(const DoctorOptions& options) {
  const auto made = diagnosis_for(options);
  if (!made) {
    report_error(made.error(), options.environment.redact);
    return kExitUsage;
  }
  // The reports contain an exit status, so it is decided before they are written; a failure to write
  // them may raise it.
  const int shown = show(report::doctor_views(made->report, made->status), options.show, made->notes);
  const int stored = write_snapshot(made->report.snapshot, options.snapshot);
  return leave(first_that_counts({shown, stored, made->status}), made->abandoned);
}

// The message about an environment that cannot be used goes to standard error; the snapshot is
// written all the same.
int run_snapshot(const SnapshotOptions& options) {
  EnvironmentOptions wanted = options.environment;
  wanted.gpu_details = true;
  auto gathered = gather(wanted);
  if (!gathered) {
    report_error(gathered.error(), options.environment.redact);
    return kExitUsage;
  }
  Facts facts = *std::move(gathered);
  // The exit status is then that of a finding, as with doctor.
  if (const auto broken = facts.snapshot.broken_environment) {
    report_error(probes::error_of(*broken), options.environment.redact);
    facts.status = kExitFindings;
  }
  const std::string text =
      snapshot_to_json(options.environment.redact ? redacted(facts.snapshot, own_names()) : facts.snapshot);
  if (options.out.empty() || options.out == "-") {
    std::cout << text;
    return facts.status;
  }
  if (const auto written = write_output(options.out, text); !written) {
    report_error(written.error());
    return exit_status_of(written.error());
  }
  std::cerr << "scankit: " << report::plain(say("wrote {}", options.out), false) << "\n";
  return facts.status;
}

// `scankit doctor --so ... --torch RANGE`: no environment is looked at, so that --python, --gpu and --driver mean other things.

namespace {

// Nothing for an option that was not given.
Result<std::vector<std::string>> axis(std::string_view option, const std::string& text,
                                      const std::vector<std::string>& known) {
  if (text.empty()) return std::vector<std::string>();
  return matrix::values_of_axis(option, text, known);
}

Result<matrix::MatrixRequest> request_of(const DoctorOptions& options) {
  matrix::MatrixRequest request;
  request.files = options.environment.so;
  request.driver = options.target.driver;
  const std::string& python = options.environment.python;
  if (!python.empty() && !matrix::is_python_axis(python))
    return Error{
        Errc::InvalidArgument, message("--python {}: with --torch, Python versions are expected", python),
        message(
            "give versions such as 3.9..3.13, or leave out --torch to examine the files for this Python")};
  SCANKIT_TRY(request.torch, axis("--torch", options.axes.torch, matrix::known_torch_releases()));
  SCANKIT_TRY(request.pythons, axis("--python", python, matrix::known_pythons()));
  SCANKIT_TRY(request.cudas, axis("--cuda", options.axes.cuda, matrix::known_cuda_releases()));
  SCANKIT_TRY(request.glibcs, axis("--glibc", options.axes.glibc, matrix::known_glibcs()));
  request.gpus = options.target.gpus;
  if (request.gpus == std::vector<std::string>{"none"}) request.gpus.clear();
  return request;
}

}  // namespace

int run_matrix(const DoctorOptions& options) {
  const auto request = request_of(options);
  if (!request) {
    report_error(request.error());
    return kExitUsage;
  }
  const auto matrix = matrix::matrix_of(*request);
  if (!matrix) {
    report_error(matrix.error());
    return kExitUsage;
  }
  return first_that_counts(
      {show(matrix::matrix_views(*matrix), options.show), matrix::exit_status_of(*matrix)});
}

}  // namespace scankit::cli

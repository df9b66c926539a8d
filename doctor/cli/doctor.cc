// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <iterator>

#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/tool_version.h"
#include "doctor/cli/commands.h"
#include "doctor/cli/diagnosis.h"
#include "doctor/cli/reports.h"
#include "doctor/explain/explainer.h"
#include "doctor/explain/observed.h"
#include "doctor/model/redact.h"
#include "doctor/model/snapshot_json.h"
#include "doctor/probes/root_choice.h"
#include "doctor/report/fold.h"
#include "doctor/report/plain.h"
#include "doctor/report/text.h"

namespace scankit {
namespace {

std::optional<std::string> variable(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

Result<Snapshot> stored_snapshot(const std::string& path) {
  std::string text;
  if (path == "-") {
    text.assign(std::istreambuf_iterator<char>(std::cin), {});
  } else {
    SCANKIT_TRY(text, read_whole_file(path));
  }
  auto snapshot = snapshot_from_json(text);
  if (!snapshot) {
    Error error = snapshot.error();
    error.message = path + ": " + error.message;
    return error;
  }
  return snapshot;
}

void print(const Diagnosis& diagnosis, const DoctorOptions& options, const std::vector<std::string>& notes,
           const SinkOptions& sink) {
  if (const auto format = format_on_stdout(options.reports)) {
    std::cout << diagnosis.rendered(*format, sink);
    return;
  }
  if (options.json) {
    std::cout << diagnosis.rendered("json", sink);
    return;
  }
  const TextStyle style{.color = wants_color(options.color, ::isatty(STDOUT_FILENO) != 0, variable),
                        .ascii = !locale_is_utf8(variable),
                        .verbose = options.verbose};
  for (const std::string& note : notes) std::cout << plain(retold(note), style.ascii) << "\n";
  std::cout << diagnosis.text([&](const Report& report) { return doctor_text(report, style); });
}

// DESIGN section 2: 3, then 2, then the step's own 1, then 4.
int first_that_counts(std::initializer_list<int> statuses) {
  for (const int wanted : {kExitInternal, kExitUsage, kExitFindings, kExitInconclusive})
    for (const int status : statuses)
      if (status == wanted) return status;
  return kExitClean;
}

// A log alone looks at nothing of this machine: it may be somebody else's.
Result<Facts> facts_for(const DoctorOptions& options) {
  Facts facts;
  if (options.from == "-" && options.log == "-")
    return Error{Errc::InvalidArgument, say("--from and --log cannot both read standard input"),
                 say("name a file")};
  if (!options.from.empty()) {
    SCANKIT_TRY(facts.snapshot, stored_snapshot(options.from));
    facts.snapshot.read_from = options.from;
    if (!options.environment.so.empty())
      SCANKIT_CHECK(join_named_files(options.environment.so, facts.snapshot));
  } else if (options.log.empty()) {
    SCANKIT_TRY(facts, gather(options.environment));
  } else {
    facts.snapshot.tool_version = kToolVersion;
  }
  if (!options.log.empty()) {
    const Speaking facts_are_english(nullptr);
    Log log;
    SCANKIT_TRY(log, explain_log(options.log));
    log.alone = options.from.empty();
    facts.snapshot.log = Probed<Log>::of(std::move(log));
  }
  return facts;
}

// What a later --from reads: the facts as they were judged, with the imports that were seen.
int write_snapshot(const Snapshot& facts, const std::string& path) {
  if (path.empty()) return kExitClean;
  const auto written = write_file_atomically(path, snapshot_to_json(facts));
  if (written) return kExitClean;
  complain(written.error());
  return exit_status_of(written.error());
}

}  // namespace

int exit_status_of(const Report& report, const std::string& fail_on) {
  const Tally n = tally(report);
  if (n.crashed > 0) return kExitInternal;
  std::size_t counted = 0;
  if (fail_on != "never") counted += n.errors;
  if (fail_on == "warning" || fail_on == "note") counted += n.warnings;
  if (fail_on == "note") counted += n.notes;
  if (counted > 0) return kExitFindings;
  return report.verdict == Verdict::Unknown ? kExitInconclusive : kExitClean;
}

int run_doctor(const DoctorOptions& given) {
  DoctorOptions options = given;
  if (!options.environment.root.empty()) {
    auto root = root_folder(options.environment.root);
    if (!root) {
      complain(root.error());
      return kExitUsage;
    }
    options.environment.root = *std::move(root);
  }
  auto found = facts_for(options);
  if (!found) {
    complain(found.error());
    return kExitUsage;
  }
  Facts facts = *std::move(found);
  if (options.redact) {
    facts.snapshot = redacted(facts.snapshot, own_names());
    facts.notes.clear();  // they name the Pythons of this user
  }
  describe_target(options.target, facts.snapshot);
  {
    const Speaking facts_are_english(nullptr);
    read_observations(facts.snapshot);
  }
  const Diagnosis diagnosis(std::move(facts.snapshot));
  const int findings = exit_status_of(diagnosis.english(), options.fail_on);
  const SinkOptions sink{.verbose = options.verbose,
                         .exit_status = first_that_counts({facts.status, findings})};
  print(diagnosis, options, facts.notes, sink);
  std::cout.flush();
  const int output = std::cout ? kExitClean : kExitInternal;
  if (!std::cout) complain({Errc::Io, say("cannot write to standard output"), ""});
  const int files = write_reports(diagnosis, options.reports, sink);
  const int stored = write_snapshot(diagnosis.english().snapshot, options.snapshot);
  return first_that_counts({facts.status, output, files, stored, findings});
}

}  // namespace scankit

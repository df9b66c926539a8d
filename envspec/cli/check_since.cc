// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "doctor/base/date.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/cli/commands.h"
#include "doctor/report/progress.h"
#include "envspec/cli/commands.h"
#include "envspec/history/history.h"

// `scankit env check --since`: the history of an environment, of its lock and of its spec.
namespace scankit::envspec {
namespace {

// Those that are named, else those of the current directory; and the file that --since names.
HistoryRequest request_of(const EnvCheckOptions& options, const Since& since) {
  HistoryRequest request{.files = {}, .cache_dir = options.cache_dir};
  const auto add = [&](const std::string& file) {
    const auto same = [&](const std::string& other) {
      return path_normalize(path_join(current_directory(), other)) ==
             path_normalize(path_join(current_directory(), file));
    };
    if (is_a_file(file) && std::ranges::none_of(request.files, same)) request.files.push_back(file);
  };
  add(options.lock.empty() ? kLockFile : options.lock);
  add(options.spec.empty() ? kSpecFile : options.spec);
  if (since.base && (since.base->kind == "lock" || since.base->kind == "spec")) add(since.text);
  return request;
}

}  // namespace

int run_env_check_since(const EnvCheckOptions& options) {
  auto since = parse_since(options.since, seconds_now());
  if (!since) {
    cli::report_error(since.error());
    return kExitUsage;
  }
  SubjectOptions asked = options.subject;
  asked.needs_python = true;
  auto subject = look_at(asked);
  if (!subject) {
    cli::report_error(subject.error());
    return subject.error().code == Errc::ToolFailed ? kExitFindings : kExitUsage;
  }
  if (!subject->snapshot.python.present()) {
    cli::report_error({Errc::NotFound,
                       message("no environment to look at: {}", why_missing(subject->snapshot.python)),
                       message("choose one with --python")});
    return kExitUsage;
  }
  for (const Message& note : subject->notes) report::progress_note(tr(note));
  const HistoryRequest request = request_of(options, *since);
  const EnvironmentHistory history = history_of(*subject, *std::move(since), request);
  std::cout << (options.show.json ? history_json(history) : history_text(history)) << std::flush;
  const int status = options.show.fail_on == "never" ? kExitClean : history_status(history);
  return std::cout ? cli::first_that_counts({subject->status, status}) : kExitInternal;
}

}  // namespace scankit::envspec

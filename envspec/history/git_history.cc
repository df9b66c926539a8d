// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <sstream>

#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "doctor/base/text.h"
#include "envspec/history/history.h"

// The commits of a lock or a spec, from the user's own git. Only `log`, `rev-parse` and `cat-file` are run:
// unlike `diff` and `status` they start no program that a repository's configuration names.
namespace scankit::envspec {
namespace {

constexpr std::size_t kMostOfGit = 64u << 20;

Result<std::string> git(const std::string& folder, const std::vector<std::string>& words) {
  ProcessRequest request;
  // --no-pager and the two keys: nothing is started on git's side. No object is fetched from a network.
  request.argv = {"git", "--no-pager", "-c", "core.fsmonitor=false", "-c", "log.showSignature=false",
                  "-C",  folder};
  request.argv.insert(request.argv.end(), words.begin(), words.end());
  std::vector<std::string> environment = {"GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=none", "LC_ALL=C"};
  for (const char* name : {"PATH", "HOME", "XDG_CONFIG_HOME"})
    if (const char* value = std::getenv(name); value != nullptr)
      environment.push_back(std::string(name) + "=" + value);
  request.environment = std::move(environment);
  request.timeout = std::chrono::seconds(20);
  request.output_limit = kMostOfGit;
  SCANKIT_TRY(ProcessResult ran, run_process(request));
  if (ran.ok() && !ran.truncated) return std::move(ran.out);
  const std::string said(trimmed(ran.err.substr(0, ran.err.find('\n'))));
  return Error{
      Errc::ToolFailed,
      message("git {} failed in {}: {}", words.front(), folder,
              ran.timed_out ? Message(message("it exceeded its time limit")) : Message(printable(said))),
      ""};
}

bool is_hash(std::string_view text) {
  return text.size() >= 40 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// "HASH TAB SECONDS TAB SUBJECT", a line each.
std::vector<GitCommit> parse_log(const std::string& text) {
  std::vector<GitCommit> commits;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find('\t'), second = line.find('\t', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    GitCommit commit{line.substr(0, first), printable(line.substr(second + 1)), 0};
    const char* end = line.data() + second;
    const auto parsed = std::from_chars(line.data() + first + 1, end, commit.time);
    if (is_hash(commit.hash) && parsed.ec == std::errc() && parsed.ptr == end) commits.push_back(commit);
  }
  return commits;
}

// What changed from one content of the file to the next, in the fields of `env diff`. A content that is no
// lock and no spec has none.
std::vector<FieldChange> changes_between(const Result<std::string>& before, const Result<std::string>& after,
                                         const std::string& name) {
  const auto side = [&](const Result<std::string>& text) {
    if (!text) return Side{};
    auto read = operand_of_text(*text, name);
    return read ? *std::move(read) : Side{};
  };
  std::vector<FieldChange> changes;
  const Side left = side(before), right = side(after);
  if (right.kind.empty()) return changes;
  for (const Difference& one : differences(left, right))
    if (one.why_unknown.empty()) changes.push_back({one.field, one.left, one.right});
  return changes;
}

HistoryEvent event_of(const GitCommit& commit, const std::string& name) {
  HistoryEvent event{.time = commit.time, .source = "git", .commit = commit.hash};
  constexpr std::size_t kShort = 10;
  event.text = message("commit {} \"{}\" changed {}", commit.hash.substr(0, kShort), commit.subject, name);
  return event;
}

}  // namespace

GitFile git_file(const std::string& path) {
  GitFile file{.path = path_normalize(path_join(current_directory(), path))};
  const std::string folder = path_dirname(file.path);
  const auto inside = git(folder, {"rev-parse", "--is-inside-work-tree"});
  if (!inside) {
    const std::string why = english(inside.error().message);
    const bool no_repository = why.find("not a git repository") != std::string::npos;
    if (inside.error().code != Errc::NotFound && !no_repository) file.problem = inside.error().message;
    return file;
  }
  const auto log = git(folder, {"log", "--max-count=" + std::to_string(kMostCommits),
                                "--format=%H%x09%ct%x09%s", "--", path_basename(file.path)});
  // A repository without any commit has no log, and no commit is what there is to tell.
  if (log) file.commits = parse_log(*log);
  file.tracked = !file.commits.empty();
  return file;
}

Result<std::string> git_content(const GitFile& file, const std::string& commit) {
  return git(path_dirname(file.path), {"cat-file", "blob", commit + ":./" + path_basename(file.path)});
}

std::vector<HistoryEvent> commits_since(const std::string& path, std::int64_t since,
                                        std::vector<Message>& problems) {
  std::vector<HistoryEvent> events;
  const GitFile file = git_file(path);
  if (!file.problem.empty()) problems.push_back(file.problem);
  if (!file.tracked) return events;
  for (std::size_t i = 0; i < file.commits.size() && file.commits[i].time >= since; ++i) {
    HistoryEvent event = event_of(file.commits[i], path);
    const Result<std::string> none = Error{Errc::NotFound, "", ""};
    event.changes =
        changes_between(i + 1 < file.commits.size() ? git_content(file, file.commits[i + 1].hash) : none,
                        git_content(file, file.commits[i].hash), path);
    event.recorded_in = path;
    events.push_back(std::move(event));
  }
  const auto committed = git_content(file, file.commits.front().hash),
             here = read_whole_file(path, kMostOfGit);
  const auto info = make_real_host()->stat(file.path);
  if (!committed || !here || !info || *committed == *here) return events;

  if (in_seconds(info->mtime_ns) < since) return events;
  HistoryEvent event{.time = in_seconds(info->mtime_ns), .source = "file", .recorded_in = path};
  event.text = message("{} was written, and the change is not committed", path);
  event.changes = changes_between(committed, here, path);
  events.push_back(std::move(event));
  return events;
}

}  // namespace scankit::envspec

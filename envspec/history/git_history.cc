// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <sstream>

#include "doctor/base/files.h"
#include "doctor/base/process.h"
#include "doctor/base/text.h"
#include "envspec/history/history.h"

// The commits of a lock or a spec, from the user's own git. Only `log`, `rev-parse`, `cat-file` and `ls-tree`
// are run: unlike `diff` and `status` they start no program that a repository's configuration names.
namespace scankit::envspec {
namespace {

constexpr std::size_t kMostOfGit = 64u << 20;

// What git ended with; warnings may come before it.
std::string reason_in(const std::string& err) {
  const auto fatal = err.starts_with("fatal: ") ? 0 : err.find("\nfatal: ");
  const auto start = fatal == std::string::npos || fatal == 0 ? 0 : fatal + 1;
  return printable(trimmed(err.substr(start, err.find('\n', start) - start)));
}

Result<std::string> git(const std::string& folder, const std::vector<std::string>& words) {
  ProcessRequest request;
  // --no-pager and the first two keys: nothing is started on git's side. No object is fetched from a network.
  // The others: what is printed is read here, and a name is that of one file.
  request.argv = {"git", "--no-pager", "--literal-pathspecs"};
  for (const char* key : {"core.fsmonitor=false", "log.showSignature=false", "log.follow=false",
                          "i18n.logOutputEncoding=UTF-8"}) {
    request.argv.emplace_back("-c");
    request.argv.emplace_back(key);
  }
  request.argv.emplace_back("-C");
  request.argv.push_back(folder);
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
  const Message why = ran.timed_out   ? message("it exceeded its time limit")
                      : ran.truncated ? message("it printed more than {} MiB", kMostOfGit >> 20)
                                      : Message(reason_in(ran.err));
  return Error{Errc::ToolFailed, message("git {} failed in {}: {}", words.front(), folder, why), ""};
}

bool says(const Error& error, std::string_view text) {
  return english(error.message).find(text) != std::string::npos;
}

bool is_hash(std::string_view text) {
  return text.size() >= 40 && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

// "HASH TAB PARENTS TAB SECONDS TAB SUBJECT", a line each.
constexpr const char* kLogFormat = "--format=%H%x09%P%x09%ct%x09%s";
std::vector<GitCommit> parse_log(const std::string& text) {
  std::vector<GitCommit> commits;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string hash, parents, time, subject;
    std::getline(std::getline(std::getline(fields, hash, '\t'), parents, '\t'), time, '\t');
    std::getline(fields, subject);
    GitCommit commit{hash, parents.substr(0, parents.find(' ')), printable(subject), 0};
    const char* end = time.data() + time.size();
    const auto parsed = std::from_chars(time.data(), end, commit.time);
    if (is_hash(hash) && (commit.parent.empty() || is_hash(commit.parent)) && parsed.ec == std::errc() &&
        parsed.ptr == end)
      commits.push_back(std::move(commit));
  }
  return commits;
}

// One side of a comparison: empty where the file was not there, an error where it cannot be read.
Result<Side> side_of(const Result<std::string>& text, const std::string& name) {
  if (text) return operand_of_text(*text, name);
  if (text.error().code == Errc::NotFound) return Side{};
  return text.error();
}

// What changed from one content of the file to the next, in the fields of `env diff`: nothing where one of
// them cannot be read, since everything would look added.
Result<std::vector<FieldChange>> changes_between(const Result<std::string>& before,
                                                 const Result<std::string>& after, const std::string& name) {
  SCANKIT_TRY(const Side left, side_of(before, name));
  SCANKIT_TRY(const Side right, side_of(after, name));
  std::vector<FieldChange> changes;
  if (right.kind.empty()) return changes;
  for (const Difference& one : differences(left, right))
    if (one.why_unknown.empty()) changes.push_back({one.field, one.left, one.right});
  return changes;
}

HistoryEvent event_of(const GitFile& file, const GitCommit& commit, const std::string& name,
                      std::vector<Message>& problems) {
  HistoryEvent event{.time = commit.time, .source = "git", .commit = commit.hash, .recorded_in = name};
  const std::string hash = commit.hash.substr(0, 10);
  event.text = message("commit {} \"{}\" changed {}", hash, commit.subject, name);
  const Result<std::string> none = Error{Errc::NotFound, "", ""};
  auto changes = changes_between(commit.parent.empty() ? none : git_content(file, commit.parent),
                                 git_content(file, commit.hash), name);
  if (changes)
    event.changes = *std::move(changes);
  else
    add_once(problems, message("what commit {} changed in {}: {}", hash, name, changes.error().message));
  return event;
}

// The commits that git does not tell of.
void say_gaps(const GitFile& file, std::int64_t since, std::vector<Message>& problems,
              std::vector<Message>& limits) {
  add_once(problems, file.problem);
  add_once(limits, file.limit);
  if (file.unknown_until) add_once(*file.unknown_until >= since ? problems : limits, shallow_clone(file));
  if (file.commits.size() == kMostCommits && file.commits.back().time >= since)
    limits.push_back(message("only the last {} commits of {} were read", kMostCommits, file.path));
}

}  // namespace

Message shallow_clone(const GitFile& file) {
  return message(
      "{} is in a shallow clone: its older commits are not known (git fetch --unshallow gets them)",
      path_dirname(file.path));
}

GitFile git_file(const std::string& path) {
  GitFile file{.path = path_normalize(path_join(current_directory(), path))};
  const std::string folder = path_dirname(file.path);
  const auto inside = git(folder, {"rev-parse", "--is-inside-work-tree", "--is-shallow-repository"});
  if (!inside) {
    // Where .git names a repository that is gone, git says "not a git repository: PATH".
    if (inside.error().code == Errc::NotFound)
      file.limit = message("git was not found, so commits were not read");
    else if (!says(inside.error(), "not a git repository (or any"))
      file.problem = inside.error().message;
    return file;
  }
  const auto log = git(folder, {"log", "--max-count=" + std::to_string(kMostCommits), kLogFormat, "--",
                                path_basename(file.path)});
  if (!log) {
    // A repository without any commit has no log, and no commit is what there is to tell.
    if (!says(log.error(), "does not have any commits yet")) file.problem = log.error().message;
    return file;
  }
  file.commits = parse_log(*log);
  file.tracked = !file.commits.empty();
  if (!log->empty() && !file.tracked)
    file.problem = message("git log printed no commit that can be read in {}", folder);
  if (inside->find("\ntrue") == std::string::npos) return file;
  for (const GitCommit& one : file.commits)
    if (one.parent.empty()) file.unknown_until = std::max(file.unknown_until.value_or(one.time), one.time);
  std::erase_if(file.commits, [](const GitCommit& one) { return one.parent.empty(); });
  return file;
}

Result<std::string> git_content(const GitFile& file, const std::string& commit) {
  const std::string folder = path_dirname(file.path), name = "./" + path_basename(file.path);
  auto text = git(folder, {"cat-file", "blob", commit + ":" + name});
  if (text) return text;
  const auto listed = git(folder, {"ls-tree", commit, name});
  if (listed && listed->empty())
    return Error{Errc::NotFound, message("commit {} does not have {}", commit, file.path), ""};
  return text;
}

std::vector<HistoryEvent> commits_since(const std::string& path, std::int64_t since,
                                        std::vector<Message>& problems, std::vector<Message>& limits) {
  std::vector<HistoryEvent> events;
  const GitFile file = git_file(path);
  say_gaps(file, since, problems, limits);
  if (!file.tracked) return events;
  // Not all older commits are behind the first one: each has the time of its own machine.
  for (const GitCommit& one : file.commits)
    if (one.time >= since) events.push_back(event_of(file, one, path, problems));
  const auto committed = git_content(file, "HEAD"), here = read_whole_file(path, kMostOfGit);
  if (!committed && committed.error().code != Errc::NotFound) add_once(problems, committed.error().message);
  if (!here) add_once(problems, here.error().message);
  const auto info = make_real_host()->stat(file.path);
  if (!committed || !here || !info || *committed == *here) return events;

  if (in_seconds(info->mtime_ns) < since) return events;
  HistoryEvent event{.time = in_seconds(info->mtime_ns), .source = "file", .recorded_in = path};
  event.text = message("{} was written, and the change is not committed", path);
  if (auto changes = changes_between(committed, here, path))
    event.changes = *std::move(changes);
  else
    add_once(problems, message("what changed in {}: {}", path, changes.error().message));
  events.push_back(std::move(event));
  return events;
}

}  // namespace scankit::envspec

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/message.h"
#include "doctor/base/result.h"
#include "envspec/check/check.h"
#include "envspec/diff/diff.h"

// `scankit env check --since`: what changed an environment, its lock or its spec, and which command or commit
// it was, as far as that is recorded. Nothing of the environment is run, and nothing is guessed: where only a
// time is known, only the time is told. All times are seconds since 1970.
namespace scankit::envspec {

// The moment from which on events count, and what is compared with the environment now.
struct Since {
  std::string text;  // as the user wrote it
  std::int64_t time = 0;
  std::string commit;                     // the commit that the time is of; "" where it is not that of one
  std::optional<Side> base;               // of a FILE: a lock, a spec, a record or a snapshot
  std::vector<Message> limits, problems;  // of the time of a FILE, as below
};
// "2026-11-20", "2026-11-20 14:05" (UTC), "12h" or "7d" ago, else a file: the time of the commit that it
// comes from, or where git does not know this content, of the file itself. A moment after `now` is refused:
// nothing could have changed since.
Result<Since> parse_since(const std::string& text, std::int64_t now);

struct FieldChange {
  std::string field, before, after;  // as in `env diff`; "" where there is nothing
};
// One thing that happened. `command` and `commit` are empty where they are not recorded.
struct HistoryEvent {
  std::int64_t time = 0;
  std::string source;  // "pip", "uv", ...: the installer; "conda", "scankit", "git", "file"
  std::string command, commit;
  Message text;  // one sentence without its end
  std::vector<FieldChange> changes;
  std::string recorded_in;  // the file that tells so; for git the file that the commit changed
};
// A difference that no record explains.
struct Unexplained {
  FieldChange change;
  Message why;
};
struct EnvironmentHistory {
  Since since;
  std::vector<HistoryEvent> events;  // by time
  std::vector<Unexplained> unexplained;
  std::vector<Message> limits;    // what is not recorded here, and so cannot be told
  std::vector<Message> problems;  // what is recorded, and could not be read
};

struct HistoryRequest {
  std::vector<std::string> files;  // locks and specs whose commits count
  std::string cache_dir;           // of hashes
};
EnvironmentHistory history_of(Subject& subject, Since since, const HistoryRequest& request);

std::string history_text(const EnvironmentHistory& history);
std::string history_json(const EnvironmentHistory& history);
// 7 if anything changed, else 4 if something could not be read, else 0.
int history_status(const EnvironmentHistory& history);

inline std::int64_t in_seconds(std::int64_t nanoseconds) { return nanoseconds / 1'000'000'000; }

// The sources. Each returns all events from `since` on.

// A package with what its installer wrote down about the installation.
struct InstalledPackage {
  std::string name, version, installer;
  std::int64_t time = 0;   // when its RECORD was written; 0: it has none
  bool requested = false;  // pip: it was named on the command line, and is no dependency of another one
  Message origin;          // of what is not from an index: its URL, commit or directory
  std::string recorded_in;
};
std::vector<InstalledPackage> installed_packages(const Host& host, const Snapshot& snapshot);
// Packages of one installer whose times are close together are one event. Those without a time are none.
std::vector<HistoryEvent> installations(const std::vector<InstalledPackage>& packages);

// PREFIX/conda-meta/history: each command of conda, with what it linked and unlinked.
std::vector<HistoryEvent> conda_history(std::string_view text, const std::string& path);
// What `scankit fix`, `restore`, `env create` and `env sync` wrote below PREFIX/.scankit.
std::vector<HistoryEvent> own_history(const Host& host, const std::string& prefix,
                                      std::vector<Message>& problems);

// The commits that changed a lock or spec, newest first, and what is not committed of it.
struct GitCommit {
  std::string hash, parent, subject;  // the first parent; "" where the commit has none
  std::int64_t time = 0;
};
struct GitFile {
  std::string path;                // absolute
  std::vector<GitCommit> commits;  // at most `kMostCommits`
  Message problem;  // why git does not tell; empty where it does, or the file is in no repository
  Message limit;    // git is not installed
  bool tracked = false;
  // Of a shallow clone: what changed the file up to then is not known. The oldest commit of the clone looks as
  // if it had added every file, and is not among `commits`.
  std::optional<std::int64_t> unknown_until;
};
inline constexpr std::size_t kMostCommits = 50;
GitFile git_file(const std::string& path);
Message shallow_clone(const GitFile& file);
// The content of that file in a commit; Errc::NotFound: the commit does not have the file.
Result<std::string> git_content(const GitFile& file, const std::string& commit);
std::vector<HistoryEvent> commits_since(const std::string& path, std::int64_t since,
                                        std::vector<Message>& problems, std::vector<Message>& limits);
// Two files of one repository have the same to say, once.
inline void add_once(std::vector<Message>& list, const Message& one) {
  if (!one.empty() && std::ranges::find(list, one) == list.end()) list.push_back(one);
}

}  // namespace scankit::envspec

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "builder/installer/installer.h"
#include "envspec/lock/lock.h"

// Which files an index has of exact versions, asked by the user's own pip or uv, so that their index,
// mirror, proxy and credentials apply. Nothing is installed and nothing is built: a source archive is only
// asked for its hash, because its set-up script would run otherwise. Names are normalized as in PEP 503,
// also as keys of maps.

namespace scankit::envspec {

struct IndexQuestion {
  std::string name, version;
};
// Every question ends in `offered` or `refused`; one in `refused` may also be in `sources`.
struct IndexReply {
  std::map<std::string, std::vector<LockedArtifact>> offered;  // by name
  std::map<std::string, LockedArtifact> sources;               // of those without a wheel: their archive
  std::map<std::string, std::string> refused;                  // by name: why there is no wheel
  std::vector<std::string> notes;                              // for people: what the installer said
};
struct IndexRequest {
  installer::Installer installer;
  std::vector<IndexQuestion> questions;
  std::chrono::seconds node_deadline{120};  // for all of it; an index that stalls is given up
  std::function<void(std::size_t done, std::size_t of)> progress;
};
IndexReply ask_index(const IndexRequest& request);

// One run for all of `questions` at once. Both installers fail as a whole if they cannot get one of them.
struct IndexRun {
  std::map<std::string, std::vector<LockedArtifact>> offered;
  bool ok = false;
  bool timed_out = false;
  bool unreachable = false;  // not the index's answer: the network's
  std::string said;          // standard error, or in English why it did not run
  std::string out;           // standard output
};
// How many questions are answered while the run goes on; may be empty.
using Looked = std::function<void(std::size_t done)>;
IndexRun ask_pip(const installer::Installer& pip, const std::vector<IndexQuestion>& questions,
                 std::chrono::milliseconds node_deadline, const Looked& looked);
// One command of an installer in the directory `folder` ("" is the current one).
IndexRun run_installer(const std::vector<std::string>& argv, const std::string& folder,
                       std::chrono::milliseconds node_deadline, const Looked& looked = {});

// Whether any of these phrases is in what an installer said.
bool says_one_of(const std::string& said, std::initializer_list<const char*> words);

// Whether an installer's resolver says that the index does not have what was asked for. Any other failure (a proxy, a
// full disk, an option that this release does not know) is no answer of the index, and an index that refuses access is
// reported by uv and pip as one that has nothing.
bool is_refusal(const std::string& said);
bool is_access_refused(const std::string& said);

// The source archive that an index has of a version, without unpacking it. pip and uv are asked for it
// with a hash that no file has: they download it, compare before they run anything from it, and name the
// hash that it has.
struct SourceReply {
  std::optional<LockedArtifact> archive;
  bool refused = false;  // the index has none; without an archive and this, nobody knows
  bool timed_out = false;
  std::string said;
};
// The line in which an installer says what went wrong, of at most 400 bytes.
std::string last_line(const std::string& said);
SourceReply ask_source(const installer::Installer& installer, const IndexQuestion& question,
                       std::chrono::milliseconds node_deadline);
// Of what they say then: "Got HASH" (pip), "Computed: sha256:HASH" (uv).
std::optional<LockedArtifact> read_source_hash(const std::string& said, const IndexQuestion& question);

IndexRun ask_uv(const installer::Installer& uv, const std::vector<IndexQuestion>& questions,
                std::chrono::milliseconds node_deadline);

// What uv writes as pylock.toml (PEP 751), as far as its own files go: by name, with URL, size and hash.
std::map<std::string, std::vector<LockedArtifact>> read_uv_pylock(std::string_view text);

// Finds out what file each installed distribution can be installed from again. Asked in this
// order: the records next to it, an older lock, the user's index, and, for what was built locally,
// its installed files.

struct ResolveRequest {
  installer::Installer installer;              // Kind::None: no index is asked
  std::optional<installer::Installer> second;  // asked for what the first does not have, or cannot reach
  const EnvironmentLock* older = nullptr;      // what it knows of the same versions is not asked again
  bool offline = false;
  std::chrono::seconds node_deadline{120};
  std::function<void(const std::string& phase)> progress;
  std::function<void(std::size_t done, std::size_t of)> part;
};
// Fills artifact, source or why_no_artifact of every distribution in `lock`. Returns notes for people.
std::vector<std::string> resolve_artifacts(const Host& host, const Snapshot& snapshot,
                                           const ResolveRequest& request, EnvironmentLock& lock);

}  // namespace scankit::envspec

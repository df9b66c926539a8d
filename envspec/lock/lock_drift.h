// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/model/finding.h"
#include "envspec/check/check.h"
#include "envspec/lock/hash_files.h"
#include "envspec/lock/lock.h"

// Two things that concern a lock after it was read. First, the forms that its texts must have: a lock
// may be a stranger's, and its texts go into files that other programs read (requirements, TOML, YAML,
// Dockerfiles). No text of these forms can end a line or a quotation. Second, the lock's half of
// `scankit env check`: one Outcome for each question, with a Finding for each drift. A fact that is
// missing gives CheckState::Unknown with `could_hide_error`. An Error means that the lock cannot be
// read or is not for this version.

namespace scankit {

bool is_sha256(std::string_view text);
bool is_locked_name(std::string_view text);     // PEP 503, normalised
bool is_locked_version(std::string_view text);  // PEP 440's letters
bool is_file_name(std::string_view text);       // of a wheel or an archive: one plain name
bool is_inner_path(std::string_view text);      // relative, without "..", one line
bool is_plain_url(std::string_view text);       // https, http or file, percent-encoded, nobody's password

// The first value that is not what it must be, as a sentence; "" where all are.
std::string bad_value(const EnvironmentLock& lock);

// Text of a stranger for a message: one line, not long.
std::string shown_value(std::string_view text);

// What each question gets. References only: it must not outlive the lock and the subject.
struct LockView {
  const std::string& file;  // as the user named it
  const EnvironmentLock& lock;
  const Subject& subject;
};

Outcome locked_python(const LockView& view);
Outcome locked_torch(const LockView& view);
Outcome locked_machine(const LockView& view);  // processor, C library, driver, GPUs
Outcome locked_packages(const LockView& view);
Outcome locked_files(const LockView& view, const Host& host, HashCache& cache);
// For a stored snapshot, which has no files: compares the build-ids of the files that it looked at.
Outcome locked_build_ids(const LockView& view);

Finding lock_finding(const LockView& view, Cause cause, std::string subject, Message summary);
// True where the fact is present. An absent fact gives false without making the outcome Unknown: the
// caller decides what absence means. Everything else makes the outcome Unknown.
bool fact_is_known(Outcome& outcome, ProbeState state, const Message& why);
// Packages that environments bring along, such as pip and setuptools: another version of them changes
// no result, so that their drift is only a note.
bool is_installers_own(const std::string& distribution);

struct LockCheckOptions {
  std::string lock;       // the file
  std::string cache_dir;  // of hashes; "": the user's
};
Result<std::vector<Outcome>> check_lock(const LockCheckOptions& options, const Subject& subject);

}  // namespace scankit

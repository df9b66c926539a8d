// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "builder/installer/installer.h"
#include "doctor/base/result.h"
#include "doctor/cli/reports.h"
#include "envspec/check/check.h"
#include "envspec/lock/lock.h"
#include "envspec/spec/derive.h"
#include "envspec/suggest/suggest.h"

namespace CLI {
class Option;
}
namespace CLI {
class App;
}
// What the parsed command lines of `scankit env` do; cli.cc parses them. Each run_ function returns the
// exit status (doctor/base/exit_status.h) and reports its own errors.

namespace scankit::envspec {

// A path from the current directory.
bool is_a_file(const std::string& path);

// --python, --root and --from. `env lock` and `env export` declare their own: they need files, which a
// stored snapshot does not have.
void add_subject_options(CLI::App& command, SubjectOptions& options);

struct EnvInitOptions {
  SubjectOptions subject;
  std::string out;  // "": ./scankit.yaml; "-": standard output
  bool force = false;
};
int run_env_init(const EnvInitOptions& options);
// Refuses to overwrite, unless `force`; the error says what to do.
Result<void> may_write_spec(const std::string& path, bool force);
// The file, and next to it the schema that its first line names.
Result<void> write_spec(const DerivedSpec& derived, const std::string& path);

struct EnvCheckOptions {
  SubjectOptions subject;
  std::string spec;    // "": ./scankit.yaml
  std::string lock;    // "": ./scankit.lock, where it is there
  std::string record;  // of an environment that `env create` made: only sizes and times are compared
  std::string since;   // a date, an age or a file: what changed from then on, and by what
  std::string cache_dir;
  bool redact = false;
  cli::ShowOptions show;
};
int run_env_check(const EnvCheckOptions& options);

struct EnvDiffOptions {
  std::string left, right;
  std::string cache_dir;
  bool json = false, redact = false;
};
int run_env_diff(const EnvDiffOptions& options);

int run_env_schema();

struct EnvLockOptions {
  SubjectOptions subject;
  installer::Installer made_by;  // asked where neither the environment nor the machine has one
  std::string spec;              // "": ./scankit.yaml where it is there
  std::string out;               // "": ./scankit.lock; "-": standard output
  std::string cache_dir;         // of hashes
  unsigned node_deadline = 120;  // seconds for the index
  bool offline = false;
};
int run_env_lock(const EnvLockOptions& options);

struct EnvExportOptions {
  std::string format;      // of export_lock()
  std::string lock;        // "": ./scankit.lock
  std::string out;         // "" or "-": standard output
  SubjectOptions subject;  // whose modules of ours go along as wheels
  bool partial = false;    // leave out what nothing can install again, and say so
};
int run_env_export(const EnvExportOptions& options);

struct EnvFetchOptions {
  std::string lock, out;
};
int run_env_fetch(const EnvFetchOptions& options);

struct EnvSuggestOptions {
  std::vector<std::string> packages;  // "mamba-ssm>=2.3"; empty: mamba-ssm and causal-conv1d
  DescribedTarget target;
  std::string installer;    // "uv", "pip", "conda"; "": whichever is found
  std::string directory;    // of the new environment; "": .venv, or another where that exists
  bool index_only = false;  // release pages cannot be reached
  bool offline = false, force = false;
  unsigned timeout = 20;  // seconds for the index
  std::string spec;       // file to write; "": none
  cli::ShowOptions show;
};
int run_env_suggest(const EnvSuggestOptions& options);
void add_suggest_command(CLI::App& env, int& exit_status);

void add_lock_commands(CLI::App& env, int& exit_status);
// What `env lock` writes, for `env create` of a spec: `out` is where it will be written.
Result<EnvironmentLock> lock_environment(const EnvLockOptions& options, const Subject& subject,
                                         const std::string& out);

struct EnvCreateOptions {
  std::string folder;
  std::string spec, lock;  // at most one; both "": ./scankit.lock, else ./scankit.yaml
  std::string python, offline, cache_dir;
  std::string installer;         // "uv", "pip", "conda"; "": the one that fits
  unsigned node_deadline = 120;  // seconds for the index, where an installer has failed
  bool json = false;
};
int run_env_create(const EnvCreateOptions& options);

struct EnvSyncOptions {
  std::string folder;  // of the environment; "": as --python, or the active one
  std::string python, lock, offline, cache_dir;
  bool dry_run = false, in_use = false, json = false;
};
int run_env_sync(const EnvSyncOptions& options);

void add_create_commands(CLI::App& env, int& exit_status);
// `env check --record DIR`: the environment against the record that `env create` or `env sync` left in it.
int run_env_check_record(const EnvCheckOptions& options);
// `env check --since DATE|FILE`: which command or commit changed what.
int run_env_check_since(const EnvCheckOptions& options);

}  // namespace scankit::envspec

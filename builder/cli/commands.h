// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "builder/compile/build.h"
#include "builder/fix/transaction.h"
#include "doctor/base/result.h"
#include "doctor/model/snapshot.h"

namespace CLI {
class App;
}  // namespace CLI

// What the parsed command lines do; cli.cc parses.
namespace scankit::cli {

// Reads a --for file that is not a snapshot: the machine's GPUs and driver. `name` is what messages call the
// file. This directory knows snapshots only; main.cc passes the reader of specs.
using MachineReader = std::function<Result<Snapshot>(const std::string& text, const std::string& name)>;

// Adds scankit build, fix and restore. A command that runs sets `exit_status`, which must outlive `app`.
void add_builder_commands(CLI::App& app, int& exit_status, const MachineReader& read_machine = {});

// What build and fix have in common.
struct CompilationOptions {
  std::string cache_dir, cache_size, toolchain;
  unsigned jobs = 0, timeout = 0;  // 0: the default; seconds for one image
};

// Options as the user gave them; "" means that an option was not given.
struct BuildOptions {
  std::string python, module, arch, out, show_manifest;
  CompilationOptions compilation;
  std::string flavor;          // "", "universal", "torch"
  std::string for_machine;     // the snapshot of a machine whose GPUs the module is for, or a spec
  MachineReader read_machine;  // of a file that is no snapshot
  std::string explain_other;   // --explain OTHER
  // The user's options without those that --check-reproducible sets itself.
  std::vector<std::string> again;
  bool reproducible = false;
  bool explain = false, list_toolchains = false, json = false;
  bool release = false, allow_download = false;
};
int run_build(const BuildOptions& options);
// --list-toolchains: every compiler of device code that is here, and which one a build would take.
int list_toolchains(const Host& host, const Snapshot& snapshot, const compile::BuildRequest& request);
// --check-reproducible: builds twice and compares. Exit status kExitFindings where the bytes differ.
int check_reproducible(const BuildOptions& options);
// Where a command writes `file`: --out as a file or a folder, else this folder. The folder is made.
Result<std::string> output_path(const std::string& out, const std::string& file);
// --show-manifest: prints the manifest and checks that the file's images are those that it names.
int show_manifest(const std::string& path);

struct FixOptions {
  std::string python, arch, module, target;
  std::string flavor;  // as for a build
  CompilationOptions compilation;
  std::string for_machine;  // as for a build
  MachineReader read_machine;
  std::vector<std::string> packages;  // that the user wants without their CUDA build
  std::string wheel, sources;  // a package of the user's own: its file, or the directory that builds it
  std::string test;            // a Python file that must pass after the fix
  bool dry_run = false, yes = false, json = false;
};
int run_fix(const FixOptions& options);

struct RestoreOptions {
  std::string python, target;
  bool yes = false;  // also to what lies outside of the environment
};
int run_restore(const RestoreOptions& options);
// What undoing these journals would do, one line for each file; those outside of the environment come last.
std::vector<std::string> undo_lines(const fix::StateFolder& state, const std::vector<fix::Journal>& journals);

// Prints one line to standard error, and below it the compiler's further lines if the hint has several.
// Returns `status`, or kExitUsage if the user gave something unusable (Errc::InvalidArgument).
int report_error(const std::string& command, const Error& error, int status);
void tell(const std::string& line);        // that stays, to standard error
void print_line(const std::string& line);  // to standard output
// The answer on a terminal. Nobody: standard input is not a terminal, so only --yes can agree.
enum class Answer { Yes, No, Nobody };
Answer ask(const std::string& question);
// Checks the options that build and fix share. Flavor and toolchain are left to the caller.
Result<compile::BuildRequest> build_request(const std::string& module, const std::string& arch,
                                            const CompilationOptions& compilation);
// --for: replaces the GPUs and the driver of `here` by those of the machine that the file describes, and sets
// `targets` to these GPUs.
Result<void> build_for(const std::string& file, const MachineReader& read_machine, Snapshot& here,
                       module::TargetRequest& targets);
// The interpreter that a command is about; what choose_python() notes goes to standard error. If an active
// environment cannot be used, the Error is of Errc::ToolFailed and `broken` describes it.
Result<std::string> chosen_python(const Host& host, const std::string& asked);
Result<std::string> chosen_python(const Host& host, const std::string& asked, BrokenEnvironment& broken);

}  // namespace scankit::cli

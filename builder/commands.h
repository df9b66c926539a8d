// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "builder/build.h"
#include "doctor/base/result.h"

// What the parsed command lines do; cli.cc parses.
namespace scankit {

struct BuildOptions {
  std::string python, module, arch, out, cache_dir, show_manifest;
  std::string toolchain;
  std::string for_machine;  // the snapshot of a machine whose GPUs the module is for
  unsigned jobs = 0;
  bool explain = false, list_toolchains = false, release = false, allow_download = false;
};
int run_build(const BuildOptions& options);
// --list-toolchains: every compiler of device code that is here, and which one a build would take.
int list_toolchains(const Host& host, const Snapshot& snapshot, const BuildRequest& request);

struct FixOptions {
  std::string python, arch, module, target, cache_dir, toolchain;
  bool dry_run = false, yes = false;
  unsigned jobs = 0;
};
int run_fix(const FixOptions& options);

struct RestoreOptions {
  std::string python, target;
};
int run_restore(const RestoreOptions& options);

// Shared: one line to standard error, the compiler's further lines below it. Returns `status`, or kExitUsage
// where the user gave something unusable.
int complain(const std::string& command, const Error& error, int status);
void tell(const std::string& line);  // progress, to standard error
Result<BuildRequest> build_request(const std::string& module, const std::string& arch,
                                   const std::string& cache_dir, unsigned jobs);
// The interpreter that a command speaks of; what choose_python notes goes to standard error.
Result<std::string> chosen_python(const Host& host, const std::string& asked);

}  // namespace scankit

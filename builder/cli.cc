// SPDX-License-Identifier: Apache-2.0
#include "builder/cli.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "builder/commands.h"

namespace scankit {
namespace {

constexpr const char* kPythonHelp = "the environment (default: $VIRTUAL_ENV, ./.venv, $CONDA_PREFIX, PATH)";
constexpr const char* kArchHelp =
    "native, all, or a list such as sm_90,sm_80,compute_75 (default: the GPUs here)";
constexpr const char* kCacheHelp = "where compiled images are kept (default: $XDG_CACHE_HOME/scankit)";
constexpr const char* kTargetHelp =
    "\"user\" for the user site, or a folder (default: the environment itself)";

void add_build(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<BuildOptions>();
  CLI::App* command = app.add_subcommand("build", "build selective_scan_cuda from what scankit carries");
  command->add_option("--python", options->python, kPythonHelp);
  command->add_option("--arch", options->arch, kArchHelp);
  command->add_option("--out", options->out, "the file, or the folder, to write (default: this folder)");
  command->add_option("--cache-dir", options->cache_dir, kCacheHelp);
  command->add_option("--jobs,-j", options->jobs, "compilers at once (default: by processors and memory)");
  command->add_flag("--explain", options->explain, "print what every image depends on, and its key");
  command->add_option("--show-manifest", options->show_manifest,
                      "print the manifest inside FILE; builds nothing");
  command->callback([options, &exit_status] { exit_status = run_build(*options); });
}

void add_fix(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<FixOptions>();
  CLI::App* command = app.add_subcommand("fix", "build and install a module that works, or change nothing");
  command->add_option("--python", options->python, kPythonHelp);
  command->add_option("--module", options->module, "the module (only selective_scan_cuda so far)");
  command->add_option("--arch", options->arch, kArchHelp);
  command->add_option("--target", options->target, kTargetHelp);
  command->add_option("--cache-dir", options->cache_dir, kCacheHelp);
  command->add_option("--jobs,-j", options->jobs, "compilers at once (default: by processors and memory)");
  auto* dry_run = command->add_flag("--dry-run", options->dry_run, "print the plan and change nothing");
  command->add_flag("--yes,-y", options->yes, "do it without asking")->excludes(dry_run);
  command->callback([options, &exit_status] { exit_status = run_fix(*options); });
}

void add_restore(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<RestoreOptions>();
  CLI::App* command = app.add_subcommand("restore", "undo the last fix");
  command->add_option("--python", options->python, kPythonHelp);
  command->add_option("--target", options->target, kTargetHelp);
  command->callback([options, &exit_status] { exit_status = run_restore(*options); });
}

}  // namespace

void add_builder_commands(CLI::App& app, int& exit_status) {
  add_build(app, exit_status);
  add_fix(app, exit_status);
  add_restore(app, exit_status);
}

}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
#include "builder/cli.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "builder/commands.h"
#include "doctor/base/say.h"

namespace scankit {
namespace {

void add_python(CLI::App& command, std::string& python) {
  command.add_option("--python", python,
                     say("the environment (default: $VIRTUAL_ENV, ./.venv, $CONDA_PREFIX, PATH)"));
}

void add_target(CLI::App& command, std::string& target) {
  command.add_option("--target", target,
                     say("\"user\" for the user site, or a folder (default: the environment itself)"));
}

void add_module(CLI::App& command, std::string& module) {
  command.add_option("--module", module,
                     say("selective_scan_cuda (the default), causal_conv1d_cuda, selective_scan_cuda_core or "
                         "selective_scan_cuda_oflex"));
}

CLI::Option* add_arch(CLI::App& command, std::string& arch) {
  return command.add_option(
      "--arch", arch,
      say("native, all, release (build alone: sm_60 and up, of several compilers), or a list such as "
          "sm_90,sm_80,compute_75 (default: the GPUs here)"));
}

void add_compilation(CLI::App& command, CompilationOptions& options) {
  command
      .add_option(
          "--toolchain", options.toolchain,
          say("auto, nvrtc, nvcc, nvrtc-wheel or nvcc-wheel (fetched by your installer), or the path of "
              "one (default: what is here)"))
      ->type_name("KIND|PATH");
  command.add_option("--cache-dir", options.cache_dir,
                     say("where compiled images are kept (default: $XDG_CACHE_HOME/scankit)"));
  command.add_option(
      "--cache-size", options.cache_size,
      say("what was not used for longest is removed beyond this; 0: no cache (default: 512M)"));
  command.add_option("--jobs,-j", options.jobs, say("compilers at once (default: by processors and memory)"));
  constexpr unsigned kLongest = 86400;
  command
      .add_option("--timeout", options.timeout,
                  say("seconds that the compiler may take for one image (default: 600)"))
      ->check(CLI::Range(1u, kLongest));
}

// What the user gave, to give it again: all but what --check-reproducible sets for its two builds.
std::vector<std::string> given_again(const CLI::App& command) {
  std::vector<std::string> words;
  for (const CLI::Option* option : command.get_options()) {
    if (option->count() == 0 || option->get_lnames().empty()) continue;
    const std::string& name = option->get_lnames()[0];
    bool ours = false;
    for (const char* set : {"check-reproducible", "out", "jobs", "cache-size", "explain", "json", "help"})
      ours = ours || name == set;
    if (ours) continue;
    if (option->get_expected_max() == 0)
      words.push_back("--" + name);
    else
      for (const std::string& value : option->results()) words.push_back("--" + name + "=" + value);
  }
  return words;
}

void add_flavor(CLI::App& command, std::string& flavor) {
  command.add_option("--flavor", flavor,
                     say("universal (the default: one file for every torch), or torch (compiled against the "
                         "environment's own torch)"));
}

void add_build(CLI::App& app, int& exit_status, const MachineReader& read_machine) {
  const auto options = std::make_shared<BuildOptions>();
  options->read_machine = read_machine;
  CLI::App* command = app.add_subcommand("build", say("build a module from what scankit carries"));
  add_python(*command, options->python);
  add_module(*command, options->module);
  add_flavor(*command, options->flavor);
  auto* arch = add_arch(*command, options->arch);
  command
      ->add_option("--for", options->for_machine,
                   say("the GPUs that this file names: the snapshot of a machine, or a scankit.yaml"))
      ->type_name("SNAPSHOT|SPEC")
      ->excludes(arch);
  command->add_option("--out", options->out, say("the file, or the folder, to write (default: this folder)"));
  add_compilation(*command, options->compilation);
  command
      ->add_flag("--release", options->release,
                 say("every architecture, each from the compiler that serves it best"))
      ->excludes(arch);
  command->add_flag("--allow-download,--yes,-y", options->allow_download,
                    say("fetch a compiler as a wheel where none here will do"));
  command->add_flag("--list-toolchains", options->list_toolchains,
                    say("print every compiler found, what it can make and which is taken; builds nothing"));
  auto* explain = command
                      ->add_option("--explain", options->explain_other,
                                   say("print what every image depends on, and its key; or how that differs "
                                       "from OTHER: a manifest, a module, or the output of --explain --json"))
                      ->expected(0, 1)
                      ->type_name("[OTHER]");
  command->add_flag("--json", options->json, say("print what was built as JSON"));
  command->add_option("--show-manifest", options->show_manifest,
                      say("print the manifest inside FILE; builds nothing"));
  command->add_flag("--check-reproducible", options->reproducible,
                    say("build twice, each time elsewhere and otherwise, and name what differs"));
  command->callback([options, explain, command, &exit_status] {
    options->again = given_again(*command);
    options->explain = explain->count() > 0;
    exit_status = run_build(*options);
  });
}

void add_fix(CLI::App& app, int& exit_status, const MachineReader& read_machine) {
  const auto options = std::make_shared<FixOptions>();
  options->read_machine = read_machine;
  CLI::App* command =
      app.add_subcommand("fix", say("repair what the doctor finds broken, or change nothing"));
  add_python(*command, options->python);
  command->add_option("--module", options->module, say("only this module (default: whatever is broken)"));
  command
      ->add_option("--package", options->packages,
                   say("also install this package without its CUDA build: mamba-ssm or causal-conv1d, with "
                       "==VERSION if you like (repeatable)"))
      ->allow_extra_args(false);
  add_flavor(*command, options->flavor);
  auto* arch = add_arch(*command, options->arch);
  command
      ->add_option("--for", options->for_machine,
                   say("the GPUs that this file names: the snapshot of a machine, or a scankit.yaml"))
      ->type_name("SNAPSHOT|SPEC")
      ->excludes(arch);
  add_target(*command, options->target);
  add_compilation(*command, options->compilation);
  auto* dry_run = command->add_flag("--dry-run", options->dry_run, say("print the plan and change nothing"));
  command->add_flag("--yes,-y", options->yes, say("do it without asking"))->excludes(dry_run);
  command->add_flag("--json", options->json, say("the plan and its result as JSON on standard output"));
  command->callback([options, &exit_status] { exit_status = run_fix(*options); });
}

void add_restore(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<RestoreOptions>();
  CLI::App* command = app.add_subcommand("restore", say("undo the last fix"));
  add_python(*command, options->python);
  add_target(*command, options->target);
  command->callback([options, &exit_status] { exit_status = run_restore(*options); });
}

}  // namespace

void add_builder_commands(CLI::App& app, int& exit_status, const MachineReader& read_machine) {
  add_build(app, exit_status, read_machine);
  add_fix(app, exit_status, read_machine);
  add_restore(app, exit_status);
}

}  // namespace scankit

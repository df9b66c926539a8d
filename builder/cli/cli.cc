// SPDX-License-Identifier: Apache-2.0
// The command lines of build, fix and restore: options, help texts and examples. Each callback sets
// `exit_status`, and the options live in a shared_ptr that the callback owns.
#include <CLI/CLI.hpp>
#include <memory>

#include "builder/cli/commands.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "doctor/command_line/command_line.h"

namespace scankit::cli {
namespace {

void add_python(CLI::App& command, std::string& python) {
  command
      .add_option("--python", python,
                  say("the Python of the environment [default: $VIRTUAL_ENV, ./.venv, $CONDA_PREFIX, PATH]"))
      ->type_name("PATH");
}

void add_target(CLI::App& command, std::string& target) {
  command
      .add_option(
          "--target", target,
          say("\"user\" for the user site, or a directory [default: the environment itself, or a directory "
              "of your own if it is not writable]"))
      ->type_name("DIR");
}

void add_module(CLI::App& command, std::string& module) {
  command
      .add_option("--module", module,
                  say("selective_scan_cuda, causal_conv1d_cuda, selective_scan_cuda_core or "
                      "selective_scan_cuda_oflex [default: selective_scan_cuda]"))
      ->type_name("NAME");
}

CLI::Option* add_arch(CLI::App& command, std::string& arch) {
  return command
      .add_option(
          "--arch", arch,
          say("native, all, release (build only: sm_60 and newer, by several compilers), none (no device "
              "code: "
              "only CPU), or a list such as sm_90,sm_80,compute_75 [default: the installed GPUs]"))
      ->type_name("ARCH");
}

void add_compilation(CLI::App& command, CompilationOptions& options) {
  command
      .add_option(
          "--toolchain", options.toolchain,
          say("auto, nvrtc, nvcc, nvrtc-wheel or nvcc-wheel (downloaded by your installer), or the path of "
              "a compiler [default: auto]"))
      ->type_name("KIND|PATH");
  command
      .add_option("--cache-dir", options.cache_dir,
                  say("directory of compiled GPU code [default: $XDG_CACHE_HOME/scankit]"))
      ->type_name("DIR");
  command
      .add_option("--cache-size", options.cache_size,
                  say("size limit of the cache; the least recently used code is removed first; 0 disables "
                      "the cache [default: 512M]"))
      ->type_name("SIZE");
  command
      .add_option("--jobs,-j", options.jobs,
                  say("number of compilers that run at once [default: by processors and memory]"))
      ->type_name("N");
  constexpr unsigned kLongest = 86400;
  command.add_option("--timeout", options.timeout, say("time limit of each compilation [default: 600]"))
      ->type_name("SECONDS")
      ->check(CLI::Range(1u, kLongest));
}

// The user's options as words of a new command line, without those that --check-reproducible sets for its two
// builds or that change only the output.
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
  command
      .add_option("--flavor", flavor,
                  say("universal (one file for every torch) or torch (compiled against the installed torch) "
                      "[default: universal]"))
      ->type_name("FLAVOR");
}

void add_build(CLI::App& app, int& exit_status, const MachineReader& read_machine) {
  const auto options = std::make_shared<BuildOptions>();
  options->read_machine = read_machine;
  CLI::App* command =
      app.add_subcommand("build", say("build a module from the sources bundled with scankit"));
  note(*command, {.examples = {"scankit build --out dist/", "scankit build --arch sm_90,sm_80 --out dist/",
                               "scankit build --module causal_conv1d_cuda --flavor torch",
                               "scankit build --list-toolchains"},
                  .statuses = {{kExitClean, say("built")},
                               {kExitUsage, say("usage error")},
                               {kExitBuildFailed, say("the build failed")}},
                  .trailing = {}});
  begin_group(*command, group_of_input());
  add_python(*command, options->python);
  add_module(*command, options->module);
  add_flavor(*command, options->flavor);
  auto* arch = add_arch(*command, options->arch);
  command
      ->add_option("--for", options->for_machine,
                   say("build for the GPUs of a stored snapshot or of a scankit.yaml"))
      ->type_name("SNAPSHOT|SPEC")
      ->excludes(arch);
  begin_group(*command, group_of_output());
  command->add_option("--out", options->out, say("file or directory to write [default: .]"))
      ->type_name("PATH");
  begin_group(*command, say("Compilation"));
  add_compilation(*command, options->compilation);
  command
      ->add_flag("--release", options->release,
                 say("build for every architecture, each with the compiler that supports it best"))
      ->excludes(arch);
  command->add_flag("--allow-download,--yes,-y", options->allow_download,
                    say("download a compiler wheel if no suitable compiler is installed"));
  begin_group(*command, say("Inspection"));
  command->add_flag(
      "--list-toolchains", options->list_toolchains,
      say("list the compilers found, what each can build and which one is used; build nothing"));
  auto* explain =
      command
          ->add_option("--explain", options->explain_other,
                       say("print the inputs and the cache key of the code for each GPU, or how they "
                           "differ from OTHER: a manifest, a module, or output of --explain --json"))
          ->expected(0, 1)
          ->type_name("OTHER");
  command->add_flag("--json", options->json, say("print JSON on standard output"));
  command
      ->add_option("--show-manifest", options->show_manifest,
                   say("print the manifest of a module; build nothing"))
      ->type_name("FILE");
  command->add_flag("--check-reproducible", options->reproducible,
                    say("build twice in different environments and report any difference"));
  command->callback([options, explain, command, &exit_status] {
    options->again = given_again(*command);
    options->explain = explain->count() > 0;
    exit_status = run_build(*options);
  });
}

void add_local_package(CLI::App& command, FixOptions& options) {
  auto* wheel =
      command.add_option("--wheel", options.wheel,
                         say("install this wheel, once its tags and its modules fit this environment"));
  auto* sources = command.add_option(
      "--from-source", options.sources,
      say("build the package in this directory against the installed torch, and install the wheel"));
  wheel->type_name("FILE")->excludes(sources);
  sources->type_name("DIR");
  for (const char* other : {"--module", "--package", "--flavor", "--arch", "--for"})
    for (CLI::Option* option : {wheel, sources}) option->excludes(other);
}

void add_test(CLI::App& command, std::string& test) {
  command
      .add_option("--test", test,
                  say("run this Python file, with pytest if it contains pytest tests, before and after the "
                      "fix, and undo the fix if it does not pass afterwards [default: the test of "
                      "scankit.module.yaml]"))
      ->type_name("FILE");
}

void add_fix(CLI::App& app, int& exit_status, const MachineReader& read_machine) {
  const auto options = std::make_shared<FixOptions>();
  options->read_machine = read_machine;
  CLI::App* command = app.add_subcommand("fix", say("repair what doctor finds broken, or change nothing"));
  note(*command, {.examples = {"scankit fix", "scankit fix --yes --package mamba-ssm",
                               "scankit fix --wheel dist/my_ext-1.0-cp311-cp311-linux_x86_64.whl",
                               "scankit fix --from-source ~/src/my-ext --test tests/smoke.py",
                               "scankit fix --python .venv/bin/python --target ~/.scankit/modules"},
                  .statuses = {{kExitClean, say("repaired, or nothing to do")},
                               {kExitFindings, say("not repaired")},
                               {kExitUsage, say("usage error")},
                               {kExitInconclusive, say("inconclusive")},
                               {kExitBuildFailed, say("build or installation failed, nothing was changed")}},
                  .trailing = {}});
  begin_group(*command, group_of_input());
  add_python(*command, options->python);
  command
      ->add_option("--module", options->module,
                   say("only this module, even if nothing needs it [default: whatever is broken]"))
      ->type_name("NAME");
  command
      ->add_option("--package", options->packages,
                   say("also install this package without its CUDA build: mamba-ssm or causal-conv1d, "
                       "optionally with ==VERSION; repeat for several"))
      ->type_name("PACKAGE")
      ->allow_extra_args(false);
  add_flavor(*command, options->flavor);
  auto* arch = add_arch(*command, options->arch);
  command
      ->add_option("--for", options->for_machine,
                   say("build for the GPUs of a stored snapshot or of a scankit.yaml"))
      ->type_name("SNAPSHOT|SPEC")
      ->excludes(arch);
  add_local_package(*command, *options);
  add_test(*command, options->test);
  add_target(*command, options->target);
  begin_group(*command, say("Compilation"));
  add_compilation(*command, options->compilation);
  begin_group(*command, group_of_output());
  auto* dry_run = command->add_flag("--dry-run", options->dry_run, say("print the plan and change nothing"));
  command->add_flag("--yes,-y", options->yes, say("do not ask for confirmation"))->excludes(dry_run);
  command->add_flag("--json", options->json, say("print the plan and its result as JSON on standard output"));
  command->callback([options, &exit_status] { exit_status = run_fix(*options); });
}

void add_restore(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<RestoreOptions>();
  CLI::App* command = app.add_subcommand("restore", say("undo the last fix"));
  note(*command, {.examples = {"scankit restore", "scankit restore --python .venv/bin/python"},
                  .statuses = {},
                  .trailing = {}});
  add_python(*command, options->python);
  add_target(*command, options->target);
  command->add_flag("--yes,-y", options->yes,
                    say("do not ask before files outside the environment are restored"));
  command->callback([options, &exit_status] { exit_status = run_restore(*options); });
}

}  // namespace

void add_builder_commands(CLI::App& app, int& exit_status, const MachineReader& read_machine) {
  add_build(app, exit_status, read_machine);
  add_fix(app, exit_status, read_machine);
  add_restore(app, exit_status);
}

}  // namespace scankit::cli

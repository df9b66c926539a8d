// SPDX-License-Identifier: Apache-2.0
#include "doctor/cli/cli.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "doctor/base/duration.h"
#include "doctor/base/say.h"
#include "doctor/cli/commands.h"
#include "doctor/cli/reports.h"

namespace scankit {
namespace {

// "a,b" and repeated options are both meant by who names several modules; a name is a dotted identifier.
std::string check_module(const std::string& name) {
  bool start = true;
  for (const char c : name) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    const bool fits = letter || (!start && ((c >= '0' && c <= '9') || c == '.'));
    if (!fits) return say("\"{}\" is no module name", name);
    start = c == '.';
  }
  return start ? say("a module name is expected") : "";
}

void add_environment_options(CLI::App& command, EnvironmentOptions& options) {
  command
      .add_option("--python", options.python,
                  say("The Python to look at (default: $VIRTUAL_ENV, ./.venv, $CONDA_PREFIX, PATH)"))
      ->type_name("P");
  command.add_option("--module", options.modules, say("Module under diagnosis; repeat for several"))
      ->type_name("M")
      ->delimiter(',')
      ->check(CLI::Validator(check_module, ""));
  command
      .add_option("--sources", options.sources,
                  say("Folder of sources to be built (default: the current one, where it is one)"))
      ->type_name("DIR");
  command.add_option("--timeout", options.timeout_s, say("Seconds that one import may take (default 60)"))
      ->type_name("S")
      ->check(CLI::Range(0.1, 86400.0));
}

void add_target_options(CLI::App& command, TargetDescription& target) {
  command
      .add_option("--gpu", target.gpus, say("Judge for these GPUs, not for those here; none: without one"))
      ->type_name("sm_90[,sm_80]")
      ->delimiter(',')
      ->check(CLI::Validator(gpu_name_problem, ""));
  command.add_option("--driver", target.driver, say("Judge for this driver version, not for the one here"))
      ->type_name("570.86")
      ->check(CLI::Validator(driver_version_problem, ""));
}

// One option a line, in the order of the help: parts would only hide it.
// NOLINTNEXTLINE(readability-function-size)
void add_doctor(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<DoctorOptions>();
  CLI::App* command = app.add_subcommand("doctor", say("Say why an import fails, or that nothing is wrong"));
  add_environment_options(*command, options->environment);
  command->add_flag("--all", options->environment.all,
                    say("Audit every compiled extension of every package"));
  auto* never = command->add_flag_callback(
      "--no-import", [options] { options->environment.imports = ImportPolicy::Never; },
      say("Read files only, run nothing"));
  command
      ->add_flag_callback(
          "--import", [options] { options->environment.imports = ImportPolicy::Always; },
          say("Import even as root on files of another user"))
      ->excludes(never);
  command
      ->add_option("--root", options->environment.root,
                   say("Look at an unpacked root file system; --python is then a path inside it"))
      ->type_name("DIR")
      ->excludes("--import");
  command
      ->add_option("--so", options->environment.so,
                   say("Examine this shared library, wheel or folder of them instead; nothing of it is run"))
      ->type_name("FILE|WHEEL|DIR")
      ->excludes("--all")
      ->excludes("--module")
      ->excludes("--sources")
      ->excludes("--import");
  auto* from =
      command->add_option("--from", options->from, say("Diagnose a stored snapshot (- for standard input)"));
  from->type_name("SNAPSHOT");
  for (const char* live :
       {"--all", "--python", "--module", "--sources", "--timeout", "--no-import", "--import", "--root"})
    from->excludes(command->get_option(live));
  auto* log = command->add_option("--log", options->log,
                                  say("Explain this error log (- for standard input), alone or with --from"));
  log->type_name("FILE");
  for (const char* live : {"--all", "--python", "--module", "--sources", "--timeout", "--no-import",
                           "--import", "--root", "--so"})
    log->excludes(command->get_option(live));
  add_budget_option(*command, options->environment.budget)->excludes(from)->excludes(log);
  add_target_options(*command, options->target);
  auto* snapshot =
      command->add_option("--snapshot", options->snapshot,
                          say("Also write the facts that the answer rests on, for --from elsewhere"));
  snapshot->type_name("FILE");
  command
      ->add_flag("--with-exports", options->environment.with_exports,
                 say("Into --snapshot also the names of every library after import torch (some MB)"))
      ->needs(snapshot)
      ->excludes(from)
      ->excludes(log);
  command->add_flag(
      "--redact", options->redact,
      say("Without user names, home folders, host names, tokens and GPU serials, in every report"));
  add_show_options(*command, options->show, kExitFindings);
  command->callback([options, &exit_status] {
    check_show_options(options->show);
    exit_status = run_doctor(*options);
  });
}

void add_snapshot(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<SnapshotOptions>();
  options->environment.imports = ImportPolicy::Never;
  options->environment.foreign_too = false;
  CLI::App* command =
      app.add_subcommand("snapshot", say("Write the facts as JSON; runs nothing of the environment"));
  add_environment_options(*command, options->environment);
  auto* never = command->add_flag_callback(
      "--no-import", [options] { options->environment.imports = ImportPolicy::Never; },
      say("Run nothing: the default"));
  command
      ->add_flag_callback(
          "--import", [options] { options->environment.imports = ImportPolicy::IfOursToRun; },
          say("Also import, as doctor does"))
      ->excludes(never);
  command->add_flag("--redact", options->redact,
                    say("Without user names, home folders, host names, tokens and GPU serials"));
  command->add_flag(
      "--with-exports", options->environment.with_exports,
      say("Also the names of every library after import torch (some MB), for --so with --from"));
  command->add_option("--out", options->out, say("File to write (default: standard output)"))
      ->type_name("FILE");
  command->callback([options, &exit_status] { exit_status = run_snapshot(*options); });
}

void add_explain(CLI::App& app, int& exit_status) {
  struct Choice {
    std::string cause;
    bool list = false;
  };
  const auto choice = std::make_shared<Choice>();
  CLI::App* command =
      app.add_subcommand("explain", say("What a cause means, how it is proven and fixed; offline"));
  auto* cause = command->add_option("cause", choice->cause, say("Slug of a cause, as doctor prints it"));
  auto* list = command->add_flag("--list", choice->list, say("All causes"))->excludes(cause);
  command->callback([choice, cause, list, &exit_status] {
    if (cause->count() + list->count() == 0) throw CLI::RequiredError(say("a cause, or --list,"));
    exit_status = run_explain(choice->cause, choice->list);
  });
}

void add_selftest(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<SelftestOptions>();
  CLI::App* command =
      app.add_subcommand("selftest", say("Plant real faults in a scratch folder; the doctor must name each"));
  command
      ->add_option("--python", options->python,
                   say("The Python that they are planted for (default: as doctor)"))
      ->type_name("P");
  command->add_flag("--json", options->json, say("The answer as JSON on standard output"));
  command->add_flag("--keep", options->keep, say("Leave the folder, to look at the faults"));
  command->callback([options, &exit_status] { exit_status = run_selftest_command(*options); });
}

}  // namespace

CLI::Option* add_budget_option(CLI::App& command, std::string& budget) {
  return command
      .add_option("--budget", budget,
                  say("Time for the whole run; what does not fit is not checked, and the answer unknown"))
      ->type_name("20s")
      ->check(CLI::Validator(
          [](const std::string& text) {
            return parse_duration(text) ? "" : say("\"{}\" is no time such as 20s, 1.5m or 500ms", text);
          },
          ""));
}

void add_doctor_commands(CLI::App& app, int& exit_status) {
  add_doctor(app, exit_status);
  add_snapshot(app, exit_status);
  add_explain(app, exit_status);
  add_selftest(app, exit_status);
}

}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
// The one main of scankit: every component adds its commands, CLI11 parses, the chosen command runs.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "builder/cli.h"
#include "ci/fleet/cli.h"
#include "ci/gate/cli.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "doctor/base/tool_version.h"
#include "doctor/cli/cli.h"
#include "doctor/cli/commands.h"
#include "doctor/cli/parser_words.h"
#include "doctor/shell/cli.h"
#include "doctor/text/choice.h"
#include "envspec/cli.h"
#include "envspec/spec_machine.h"
#include "validate/cli.h"

namespace {

std::string welcome() {
  return scankit::say(
      "scankit keeps compiled PyTorch CUDA extensions working.\n\n"
      "  scankit doctor       why does the import fail? (of the Python in front of you, or --python P)\n"
      "  scankit fix          build and install a module that works, or change nothing\n"
      "  scankit validate     prove that the installed module computes right\n\n"
      "scankit --help lists everything.\n");
}

std::optional<std::string> variable(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// A full disk, or a closed standard output, where the command itself does not look.
int status_with_output(int status) {
  std::cout.flush();
  const bool written = std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good();
  if (written || status == scankit::kExitInternal) return status;
  scankit::complain({scankit::Errc::Io, scankit::say("cannot write to standard output"), ""});
  return scankit::kExitInternal;
}

int run(int argc, char** argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  const auto language = scankit::choose_language(scankit::take_language_option(words), variable);
  if (!language) {
    scankit::complain(language.error());
    return scankit::kExitUsage;
  }
  const scankit::Speaking speaking(language->get());
  CLI::App app{
      scankit::say("Environment doctor and reproducible build toolkit for compiled PyTorch CUDA extensions"),
      "scankit"};
  scankit::name_help_parts(app);
  std::string shown_in_the_help;  // taken out of the words above, wherever it stands
  app.add_option("--lang", shown_in_the_help,
                 scankit::say("Language of what people read: en, a translation, or the path of a .mo file "
                              "(default: LANGUAGE, LC_ALL, LC_MESSAGES, LANG)"))
      ->type_name("L");
  app.set_version_flag("--version", std::string("scankit ") + scankit::kToolVersion,
                       scankit::say("Print the version and exit"));
  app.require_subcommand(0, 1);
  int exit_status = scankit::kExitClean;
  scankit::add_doctor_commands(app, exit_status);
  scankit::add_builder_commands(app, exit_status, scankit::machine_of_spec);
  scankit::add_env_commands(app, exit_status);
  scankit::add_validate_commands(app, exit_status);
  scankit::add_ci_commands(app, exit_status);
  scankit::add_fleet_commands(app, exit_status, words);
  scankit::add_shell_commands(app, exit_status);
  try {
    std::ranges::reverse(words);  // CLI11 takes a vector from its end
    app.parse(std::move(words));
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& problem) {
    std::fprintf(stderr, "scankit: %s\n",
                 scankit::say("{} (see: scankit --help)", scankit::parse_problem(problem)).c_str());
    return scankit::kExitUsage;
  }
  if (app.get_subcommands().empty()) std::fputs(welcome().c_str(), stdout);
  return status_with_output(exit_status);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& bug) {
    std::fprintf(stderr, "scankit: internal error: %s\nPlease report this with the command line you used.\n",
                 bug.what());
    return scankit::kExitInternal;
  }
}

// SPDX-License-Identifier: Apache-2.0
// The one main() of scankit: it chooses the language, lets CLI11 parse the command line, and the
// callback of the chosen command sets the exit status. An exception that reaches main() is a bug and is
// reported as one.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "doctor/base/exit_status.h"
#include "doctor/base/say.h"
#include "doctor/cli/commands.h"
#include "doctor/command_line/command_line.h"
#include "doctor/program.h"
#include "doctor/report/progress.h"
#include "doctor/report/words.h"
#include "doctor/text/catalogue.h"

namespace {

// What scankit prints without a command: the four commands that most users need.
std::string welcome() {
  return scankit::say(
      "scankit keeps compiled PyTorch CUDA extensions working.\n\n  scankit run -- CMD   "
      "run a command, and explain its failure\n  scankit doctor       find out why an "
      "import fails (in the current Python, or --python P)\n  scankit fix          build and install a "
      "module that works, or change nothing\n  scankit validate     prove that the results of the installed "
      "module are correct\n\nscankit help lists all commands.\n");
}

std::optional<std::string> variable(std::string_view name) {
  const char* value = std::getenv(std::string(name).c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

// Turns an output that was lost into kExitInternal: a full disk, or a standard output that was closed. No
// command checks that itself. The C library does not remember why an earlier write failed, so one more
// byte is written, to an output that is incomplete anyway, to get errno.
int status_with_output(int status) {
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good()) return status;
  const std::string why = ::write(STDOUT_FILENO, "\n", 1) < 0 ? std::string(": ") + std::strerror(errno) : "";
  scankit::cli::report_error({scankit::Errc::Io, scankit::say("cannot write to standard output") + why, ""});
  return scankit::kExitInternal;
}

int run(int argc, char** argv) {
  // The order matters: the language is taken out of the words first, because even the help texts that
  // CLI11 is given below are translated when the options are added.
  std::vector<std::string> words(argv + 1, argv + argc);
  if (argc > 0) scankit::report::set_scankit_program(argv[0]);
  const auto language = scankit::choose_language(scankit::take_language_option(words), variable);
  if (!language) {
    scankit::cli::report_error(language.error());
    return scankit::kExitUsage;
  }
  const scankit::Speaking speaking(language->get());
  scankit::report::set_progress_language(language->get());
  CLI::App app{
      scankit::say("environment doctor and reproducible build toolkit for compiled PyTorch CUDA extensions"),
      "scankit"};
  int exit_status = scankit::kExitClean;
  scankit::add_all_commands(app, exit_status, words);
  try {
    std::ranges::reverse(words);  // CLI11 takes a vector from its end
    app.parse(std::move(words));
  } catch (const CLI::Success& asked) {  // --help, --version
    return status_with_output(app.exit(asked));
  } catch (const CLI::ParseError& problem) {
    // As with uv, "scankit env" alone lists its commands, and is a usage error all the same.
    if (const std::string help = scankit::help_of_bare_group(app); !help.empty())
      std::fputs(help.c_str(), stdout);
    else
      std::fprintf(stderr, "scankit: %s\n", scankit::usage_problem(app, problem).c_str());
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

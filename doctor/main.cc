// SPDX-License-Identifier: Apache-2.0
// The one main of scankit: every component adds its commands, CLI11 parses, the chosen command runs.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>

#include "builder/cli.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/tool_version.h"
#include "doctor/cli/cli.h"
#include "validate/cli.h"

namespace {

constexpr const char* kWelcome =
    "scankit keeps compiled PyTorch CUDA extensions working.\n\n"
    "  scankit doctor       why does the import fail? (of the Python in front of you, or --python P)\n"
    "  scankit fix          build and install a module that works, or change nothing\n"
    "  scankit validate     prove that the installed module computes right\n\n"
    "scankit --help lists everything.\n";

int run(int argc, char** argv) {
  CLI::App app{"Environment doctor and reproducible build toolkit for compiled PyTorch CUDA extensions",
               "scankit"};
  app.set_version_flag("--version", std::string("scankit ") + scankit::kToolVersion);
  app.require_subcommand(0, 1);
  int exit_status = scankit::kExitClean;
  scankit::add_doctor_commands(app, exit_status);
  scankit::add_builder_commands(app, exit_status);
  scankit::add_validate_commands(app, exit_status);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& problem) {
    std::fprintf(stderr, "scankit: %s (see: scankit --help)\n", problem.what());
    return scankit::kExitUsage;
  }
  if (app.get_subcommands().empty()) std::fputs(kWelcome, stdout);
  return exit_status;
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

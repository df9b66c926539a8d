// SPDX-License-Identifier: Apache-2.0
// The one main() of scankit. An exception that reaches it is a bug and is reported as one.
#include <cstdio>
#include <exception>

#include "doctor/base/exit_status.h"
#include "doctor/program.h"

int main(int argc, char** argv) {
  try {
    return scankit::run_scankit(argc, argv);
  } catch (const std::exception& bug) {
    std::fprintf(stderr, "scankit: internal error: %s\nPlease report this with the command line you used.\n",
                 bug.what());
    return scankit::kExitInternal;
  }
}

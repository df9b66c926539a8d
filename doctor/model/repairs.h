// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace scankit {

// A change of the environment by `scankit fix` that did not come to its end: a journal of builder/README.md's
// layout whose state is neither "committed" nor "undone".
struct UnfinishedRepair {
  std::string journal;   // the file
  std::string state;     // "applying", "undoing"; "" where the file cannot be read as a journal
  std::string module;    // what was being installed
  bool running = false;  // the process that the lock file names lives
};

}  // namespace scankit

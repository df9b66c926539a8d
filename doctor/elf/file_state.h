// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include "doctor/host/host.h"

namespace scankit {

// What a file that should be a shared library really is. The words are those of Extension::file_state.
struct FileState {
  std::string state;    // "elf", "empty", "truncated", "html", "git-lfs", "windows", "not-elf", "unreadable",
                        // "vanished"
  std::string detail;   // what was seen, in one line
  std::string machine;  // of an ELF file: "x86_64"
};
FileState file_state(const std::shared_ptr<const ByteSource>& source);
// The same for a file that could not be opened or read.
FileState state_of_failure(const Error& error);

}  // namespace scankit

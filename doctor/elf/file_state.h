// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/message.h"
#include "doctor/elf/image.h"
#include "doctor/host/host.h"

namespace scankit {

// The NUL-terminated texts in a file's constant data (.rodata*, .data*; all of it where section headers are
// gone), each from `start` on: at most `most` of them, none longer than 512 bytes. It reads a megabyte at a
// time and 64 in all: what comes later in a larger file is not seen.
std::vector<std::string> find_texts(const Image& image, std::string_view start, std::size_t most);

// What a file that should be a shared library really is. The words are those of Extension::file_state.
struct FileState {
  std::string state;    // "elf", "empty", "truncated", "html", "git-lfs", "windows", "not-elf", "unreadable",
                        // "vanished"
  Message detail;       // what was seen, in one line
  std::string machine;  // of an ELF file: "x86_64"
};
FileState file_state(const std::shared_ptr<const ByteSource>& source);
// The same for a file that could not be opened or read.
FileState state_of_failure(const Error& error);

}  // namespace scankit

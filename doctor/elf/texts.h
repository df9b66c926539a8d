// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "doctor/elf/image.h"

namespace scankit {

// The NUL-terminated texts in a file's constant data (.rodata*, .data*; all of it where section headers are
// gone), each from `start` on: at most `most` of them, none longer than 512 bytes. It reads a megabyte at a
// time and 64 in all: what comes later in a larger file is not seen.
std::vector<std::string> find_texts(const Image& image, std::string_view start, std::size_t most);

}  // namespace scankit

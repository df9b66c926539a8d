// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

namespace scankit {

// As a POSIX shell reads it back: quoted only where needed.
std::string shell_quoted(const std::string& word);
// A command line to paste: every word of `words` quoted.
std::string shell_line(const std::vector<std::string>& words);

}  // namespace scankit

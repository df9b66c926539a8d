// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

namespace scankit {

// Text from files and children, made fit for a terminal: control bytes, terminal escapes, C1 controls and
// bytes that are not UTF-8 become \xNN. With `ascii`, everything beyond ASCII does too.
std::string plain(std::string_view text, bool ascii);

// As a POSIX shell reads it back: quoted only where needed.
std::string shell_quoted(const std::string& word);

}  // namespace scankit

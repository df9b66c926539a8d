// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/host/host.h"

// Files and literals that the Python probes read. What they read is somebody else's bytes: nothing here
// trusts it.
namespace scankit {

// The first bytes of a file, at most `limit`.
Result<std::string> read_head(const Host& host, const std::string& path, std::size_t limit);
bool is_regular_file(const Host& host, const std::string& path);
// The folder in which the examined Python would be started; empty where the examined system is not the
// running one.
std::string working_directory(const Host& host);
// os.path.abspath: lexical, against working_directory().
std::string absolute_path(const Host& host, const std::string& path);

// What stands between quotes at text[at] ('...' or "..."), with \\ and \' undone; nothing where no literal
// starts there. Moves `at` behind the closing quote.
std::optional<std::string> python_string_literal(std::string_view text, std::size_t& at);

}  // namespace scankit

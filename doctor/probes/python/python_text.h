// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/host/host.h"

// Text and path reading that the Python probes share. What they read is somebody else's bytes: nothing here
// trusts it.
namespace scankit {

std::string_view trimmed(std::string_view text);
// Split at '\n'; a '\r' before it goes too. The views point into `text`.
std::vector<std::string_view> lines_of(std::string_view text);
std::string lowered(std::string_view text);
bool is_digit(char c);
bool is_utf8(std::string_view text);
// For messages: control bytes and bytes that are not ASCII letters of a name come out as \xNN unless valid
// UTF-8.
std::string printable(std::string_view text);

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
// PEP 503: "Mamba_SSM" and "mamba-ssm" are one name.
std::string normalized_name(std::string_view distribution);
std::string top_package(const std::string& dotted);  // "torch" of "torch.nn"

}  // namespace scankit

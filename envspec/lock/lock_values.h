// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include "envspec/lock/lock.h"

// What the texts of a lock may be. A lock may be a stranger's, and goes into files that other programs read:
// requirements, TOML, YAML, Dockerfiles. Held to these forms, nothing in it can end a line or a quotation.
namespace scankit {

bool is_sha256(std::string_view text);
bool is_locked_name(std::string_view text);     // PEP 503, normalised
bool is_locked_version(std::string_view text);  // PEP 440's letters
bool is_file_name(std::string_view text);       // of a wheel or an archive: one plain name
bool is_inner_path(std::string_view text);      // relative, without "..", one line
bool is_plain_url(std::string_view text);       // https, http or file, percent-encoded, nobody's password

// The first value that is not what it must be, as a sentence; "" where all are.
std::string bad_value(const EnvironmentLock& lock);

// Text of a stranger for a message: one line, not long.
std::string shown_value(std::string_view text);

}  // namespace scankit

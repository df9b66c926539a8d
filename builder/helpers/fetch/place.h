// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stddef.h>
#include <stdint.h>

// URLs as far as this program must understand them: which it may ask, and how to show one.
namespace scankit_fetch {

constexpr size_t kLongestUrl = 4096;

// Whether this program requests the URL: https anywhere, and http only from this machine itself, which tests
// serve. With plain http a machine in between could read or replace the bytes.
bool may_ask(const char* url);
bool is_https(const char* url);
// "https://user:secret@host/p?q" -> "https://host/p": without name, password and query, since an error
// message may end up in a public issue. The result is in `buffer`.
const char* shown(const char* url, char (&buffer)[kLongestUrl]);

// True for 1 to 18 decimal digits alone. (strtoull has a newer symbol version than our floor.)
bool parse_number(const char* text, uint64_t* value);
// The number that `text` begins with, 18 digits at most; 0 if it begins with none.
uint64_t leading_number(const char* text);
const char* in_digits(uint64_t value, char (&buffer)[24]);

}  // namespace scankit_fetch

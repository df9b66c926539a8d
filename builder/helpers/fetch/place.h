// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stddef.h>
#include <stdint.h>

// URLs as far as this program must understand them: which it may ask, and how to show one.
namespace scankit_fetch {

constexpr size_t kLongestUrl = 4096;

// https, or http to this machine itself, which only tests serve. Anything else would let whoever sits between
// read along or put in other bytes.
bool may_ask(const char* url);
bool is_https(const char* url);
// "https://user:secret@host/p" -> "https://host/p?..." without name, password and query: a message may go
// into an issue.
const char* shown(const char* url, char (&buffer)[kLongestUrl]);

// Decimal digits alone; false otherwise and where it is larger than 2^63. (strtoull has a version newer than
// the floor.)
bool parse_number(const char* text, uint64_t* value);
// The number that `text` begins with.
uint64_t leading_number(const char* text);
const char* in_digits(uint64_t value, char (&buffer)[24]);

}  // namespace scankit_fetch

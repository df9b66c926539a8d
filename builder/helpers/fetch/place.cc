// SPDX-License-Identifier: Apache-2.0
#include "builder/helpers/fetch/place.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

namespace scankit_fetch {
namespace {

bool begins_with(const char* text, const char* prefix) {
  return strncasecmp(text, prefix, strlen(prefix)) == 0;
}

// The host's first character; its end in `end`. RFC 3986: the authority ends at '/', '?' or '#', and what
// stands before its last '@' is no part of the host.
const char* host_of(const char* url, const char** end) {
  const char* at = strstr(url, "://");
  at = at != nullptr ? at + 3 : url;
  *end = at + strcspn(at, "/?#");
  for (const char* c = at; c < *end; ++c)
    if (*c == '@') at = c + 1;
  return at;
}

// Resolves nothing. The host must end after the name, or "localhost.example.org" would pass.
bool is_loopback(const char* url) {
  const char* end = nullptr;
  const char* host = host_of(url, &end);
  constexpr const char* kNames[] = {"127.0.0.1", "localhost", "[::1]"};
  for (const char* name : kNames) {
    const size_t length = strlen(name);
    if (static_cast<size_t>(end - host) < length || strncasecmp(host, name, length) != 0) continue;
    if (host + length == end || host[length] == ':') return true;
  }
  return false;
}

}  // namespace

bool is_https(const char* url) { return begins_with(url, "https://"); }

bool may_ask(const char* url) {
  if (strlen(url) >= kLongestUrl) return false;
  // URL parsers disagree about spaces, control characters and backslashes: libcurl could contact another host
  // than the one that host_of() finds.
  for (const char* c = url; *c != 0; ++c)
    if (static_cast<unsigned char>(*c) <= ' ' || *c == 0x7f || *c == '\\') return false;
  return is_https(url) || (begins_with(url, "http://") && is_loopback(url));
}

const char* shown(const char* url, char (&buffer)[kLongestUrl]) {
  const char* end = nullptr;
  const char* host = host_of(url, &end);
  const char* rest = strstr(url, "://");
  const int scheme = rest != nullptr ? static_cast<int>(rest + 3 - url) : 0;
  const int path = static_cast<int>(strcspn(host, "?#"));
  snprintf(buffer, sizeof buffer, "%.*s%.*s", scheme, url, path, host);
  for (char* c = buffer; *c != 0; ++c)
    if (static_cast<unsigned char>(*c) < ' ' || *c == 0x7f) *c = '?';
  return buffer;
}

bool parse_number(const char* text, uint64_t* value) {
  if (*text == 0 || strlen(text) > 18 || text[strspn(text, "0123456789")] != 0) return false;
  *value = leading_number(text);
  return true;
}

uint64_t leading_number(const char* text) {
  uint64_t value = 0;
  for (int i = 0; i < 18 && text[i] >= '0' && text[i] <= '9'; ++i)
    value = 10 * value + static_cast<uint64_t>(text[i] - '0');
  return value;
}

const char* in_digits(uint64_t value, char (&buffer)[24]) {
  snprintf(buffer, sizeof buffer, "%llu", static_cast<unsigned long long>(value));
  return buffer;
}

}  // namespace scankit_fetch

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "builder/helpers/fetch/curl_api.h"
#include "doctor/base/sha256.h"

// URLs as far as this program must understand them: which it may ask, and how to show one.
// One HTTP exchange: the request for the rest of a file, the checks while its bytes arrive, and the judgement
// of how it ended. main.cc decides about further attempts, redirects and the final hash.

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

constexpr int kProgressChannel = 3;

// The command line, as pointers into argv.
struct Request {
  const char* url = nullptr;
  const char* out = nullptr;
  const char* sha256 = nullptr;  // lower-case hex; null: not known
  const char* accept = nullptr;  // the Accept header
  const char* ca = nullptr;      // a file of certificates, in place of libcurl's
  uint64_t size = 0;             // expected, in bytes; 0: not known
  uint64_t limit = 1ull << 30;   // bytes; a longer file is refused
  uint64_t attempts = 5;         // in a row that bring nothing
  uint64_t backoff_ms = 500;     // doubled each time
  uint64_t stall_s = 30;         // seconds of silence that end an attempt
};

// The growing file PATH.part. The descriptor's offset, `have` and the bytes in `hash` always agree.
struct Part {
  int fd = -1;
  uint64_t have = 0;
  scankit::Sha256 hash;
};
bool restart(Part* part);  // empty again; false: the disk refuses

enum class Ended {
  Whole,
  Again,   // worth another attempt: cut, stalled, a server that is busy
  Fresh,   // the bytes so far are of another file: begin at 0
  Moved,   // `moved_to`
  Refused  // for good
};

// One response: what its headers say, and why it ended. The callbacks of libcurl fill it.
struct Attempt {
  const Request* request = nullptr;
  Part* part = nullptr;
  uint64_t begin = 0;          // part->have when it began
  uint64_t total = 0;          // of the whole file, as the server says; 0: it does not
  uint64_t range_begin = 0;    // the first byte of a 206, by Content-Range
  uint64_t came = 0;           // of the whole file, where that is more than it may be
  uint64_t retry_after_s = 0;  // by Retry-After; 0 if it is absent or a date
  long status = 0;             // HTTP; of the last response, after any 1xx
  int curl_code = 0;           // CURLE_*; 0: the exchange was complete
  int write_error = 0;  // errno of what failed where `stop` is NoRoom; libcurl changes errno afterwards
  char etag[256] = "";  // of a strong validator alone (RFC 9110, 13.1.5)
  char moved_to[kLongestUrl] = "";
  char why[512] = "";  // libcurl's own words
  // Why our own callback ended the transfer. TooLong: beyond `limit`. Endless: more bytes than `size`.
  // OtherSize: the server announces another size than `size`. OtherRange: not the range that was asked for.
  // NoRoom: write(2) failed.
  enum class Stop { None, TooLong, Endless, OtherSize, OtherRange, NoRoom } stop = Stop::None;
  bool began = false;  // the first byte of the body was accepted
};

// Requests the bytes from part->have on. `curl` is an easy handle that may be reused: every option is set
// anew. `etag`: of the response that brought the first bytes, "" if there was none.
Ended attempt(const CurlApi& api, void* curl, const char* url, const char* etag, Attempt* attempt);
// Prints the one line that tells the user why the attempt failed, to stderr.
void report_error_of(const Attempt& attempt, const char* url);

}  // namespace scankit_fetch

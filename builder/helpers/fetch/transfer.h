// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "doctor/base/sha256.h"

// The host's own libcurl, by dlopen: its TLS library and its
// certificates are those that hold on this machine.
namespace scankit_fetch {

struct CurlList;

// Numbers of curl/curl.h, which never change: CURLOPT_* with their type's base (0, 10000 for pointers, 20000
// for functions, 30000 for curl_off_t), CURLINFO_* (0x100000 for texts, 0x200000 for longs), CURLE_*.
enum Option {
  kOptLowSpeedLimit = 19,
  kOptLowSpeedTime = 20,
  kOptNoProgress = 43,
  kOptNetrc = 51,
  kOptConnectTimeout = 78,
  kOptNoSignal = 99,
  kOptProtocols = 181,
  kOptSuppressConnectHeaders = 265,
  kOptWriteData = 10001,
  kOptUrl = 10002,
  kOptProxy = 10004,
  kOptErrorBuffer = 10010,
  kOptUserAgent = 10018,
  kOptHttpHeader = 10023,
  kOptHeaderData = 10029,
  kOptCaInfo = 10065,
  kOptCaPath = 10097,
  kOptWriteFunction = 20011,
  kOptHeaderFunction = 20079,
};
enum Info { kInfoRedirectUrl = 0x100000 + 31, kInfoStatus = 0x200000 + 2 };
enum Code {
  kCurlProxyResolve = 5,
  kCurlHostResolve = 6,
  kCurlConnect = 7,
  kCurlPartialFile = 18,
  kCurlWriteError = 23,
  kCurlTimeout = 28,
  kCurlSslConnect = 35,
  kCurlGotNothing = 52,
  kCurlSendError = 55,
  kCurlReceiveError = 56,
  kCurlCertificate = 60,
  kCurlCertificateFile = 77,
  kCurlHttp2 = 16,
  kCurlHttp2Stream = 92,
};
// Values of CURLOPT_PROTOCOLS (a bit mask) and of CURLOPT_NETRC.
constexpr long kProtocolHttp = 1, kProtocolHttps = 2, kNetrcOptional = 1;

// The functions of curl/curl.h, with opaque handles. easy_setopt and easy_getinfo are variadic: the argument
// must have exactly the type that the option takes, so a number is written as a long (1L).
struct CurlApi {
  int (*global_init)(long);
  void* (*easy_init)();
  void (*easy_cleanup)(void*);
  void (*easy_reset)(void*);
  int (*easy_setopt)(void*, int, ...);
  int (*easy_perform)(void*);
  int (*easy_getinfo)(void*, int, ...);
  const char* (*easy_strerror)(int);
  CurlList* (*slist_append)(CurlList*, const char*);
  void (*slist_free_all)(CurlList*);
};

// Fills `api`. False, with a line on stderr, if this machine has no libcurl or one that lacks a function.
bool load_curl(CurlApi* api);

// URLs as far as this program must understand them: which it may ask, and how to show one.
// One HTTP exchange: the request for the rest of a file, the checks while its bytes arrive, and the judgement
// of how it ended. main.cc decides about further attempts, redirects and the final hash.

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

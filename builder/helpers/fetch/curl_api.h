// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stddef.h>

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

}  // namespace scankit_fetch

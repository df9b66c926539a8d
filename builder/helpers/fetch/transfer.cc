// SPDX-License-Identifier: Apache-2.0
#include "builder/helpers/fetch/transfer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "builder/helpers/gpu/library.h"

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

namespace {

// The distributions' flavours by TLS library; all have the same functions.
constexpr const char* kNames[] = {"libcurl.so.4", "libcurl-gnutls.so.4", "libcurl-nss.so.4"};

}  // namespace

bool load_curl(CurlApi* api) {
  using scankit_gpu::bind;
  void* library = nullptr;
  for (const char* name : kNames)
    if (library == nullptr) library = scankit_gpu::load_library(name);
  if (library == nullptr) {
    scankit_gpu::report_error("libcurl.so.4 was not found, and no other build of it: {}",
                              scankit_gpu::load_error());
    return false;
  }
  if (bind(library, "curl_global_init", &api->global_init) &&
      bind(library, "curl_easy_init", &api->easy_init) &&
      bind(library, "curl_easy_cleanup", &api->easy_cleanup) &&
      bind(library, "curl_easy_reset", &api->easy_reset) &&
      bind(library, "curl_easy_setopt", &api->easy_setopt) &&
      bind(library, "curl_easy_perform", &api->easy_perform) &&
      bind(library, "curl_easy_getinfo", &api->easy_getinfo) &&
      bind(library, "curl_easy_strerror", &api->easy_strerror) &&
      bind(library, "curl_slist_append", &api->slist_append) &&
      bind(library, "curl_slist_free_all", &api->slist_free_all))
    return true;
  scankit_gpu::report_error("libcurl.so.4 lacks a function: {}", scankit_gpu::load_error());
  return false;
}

namespace {

// "NAME: value" of a header line; null where it is another one.
const char* value_of(const char* line, const char* name) {
  const size_t length = strlen(name);
  if (strncasecmp(line, name, length) != 0 || line[length] != ':') return nullptr;
  line += length + 1;
  return line + strspn(line, " \t");
}

// Takes what decides about resuming. Content-Length is the whole file's only in a 200; in a 206 it is the
// range's, and Content-Range has the total. Only a strong ETag may go into If-Range, so one that begins with
// W/ is dropped.
void take_header(Attempt* a, const char* line) {
  if (strncasecmp(line, "HTTP/", 5) == 0) {  // of the next response: a 100, a proxy's, the real one
    const char* blank = strchr(line, ' ');
    a->status = blank != nullptr ? static_cast<long>(leading_number(blank + 1)) : 0;
    a->total = a->range_begin = a->retry_after_s = 0;
    a->etag[0] = 0;
    return;
  }
  if (const char* v = value_of(line, "Content-Length"); v != nullptr && a->status == 200)
    a->total = leading_number(v);
  if (const char* v = value_of(line, "Retry-After"); v != nullptr) a->retry_after_s = leading_number(v);
  if (const char* v = value_of(line, "ETag"); v != nullptr && *v == '"')
    snprintf(a->etag, sizeof a->etag, "%.*s", static_cast<int>(strcspn(v, "\r\n")), v);
  if (const char* v = value_of(line, "Content-Range"); v != nullptr && strncasecmp(v, "bytes ", 6) == 0) {
    a->range_begin = leading_number(v + 6);
    const char* slash = strchr(v, '/');
    a->total = slash != nullptr ? leading_number(slash + 1) : 0;
  }
}

// libcurl calls it with one whole header line, which is not NUL-terminated (CURLOPT_HEADERFUNCTION).
size_t on_header(const char* bytes, size_t one, size_t count, void* user) {
  char line[1024];
  const size_t length = one * count;
  snprintf(line, sizeof line, "%.*s", static_cast<int>(length < sizeof line ? length : sizeof line - 1),
           bytes);
  take_header(static_cast<Attempt*>(user), line);
  return length;
}

// Called right after the failure: what libcurl does next may change errno.
void stop_writing(Attempt* a) {
  a->write_error = errno;
  a->stop = Attempt::Stop::NoRoom;
}

// Where the first byte of the body belongs, and whether this is the file at all.
bool begin_body(Attempt* a) {
  a->began = true;
  using Stop = Attempt::Stop;
  // A 200 is the answer of a server without ranges, or the file has changed: the whole file follows.
  if (a->status == 200 && a->part->have > 0 && !restart(a->part)) stop_writing(a);
  if (a->status == 206 && a->range_begin != a->part->have) a->stop = Stop::OtherRange;
  if (a->total > a->request->limit) a->stop = Stop::TooLong;
  if (a->request->size != 0 && a->total != 0 && a->total != a->request->size) a->stop = Stop::OtherSize;
  return a->stop == Stop::None;
}

bool write_all(int fd, const char* bytes, size_t count) {
  while (count > 0) {
    const ssize_t put = write(fd, bytes, count);
    if (put < 0 && errno == EINTR) continue;
    if (put == 0) errno = EIO;
    if (put <= 0) return false;
    bytes += put;
    count -= static_cast<size_t>(put);
  }
  return true;
}

// Any result but `length` makes libcurl fail with CURLE_WRITE_ERROR; `stop` has the reason.
size_t on_body(const char* bytes, size_t one, size_t count, void* user) {
  auto* a = static_cast<Attempt*>(user);
  const size_t length = one * count;
  if (a->status != 200 && a->status != 206) return length;  // an error's page
  if (!a->began && !begin_body(a)) return 0;
  Part* part = a->part;
  a->came = part->have + length;
  if (a->came > a->request->limit) a->stop = Attempt::Stop::TooLong;
  // A body without a length may go on for ever, and no byte after the last one that is expected can be right.
  if (a->request->size != 0 && a->came > a->request->size) a->stop = Attempt::Stop::Endless;
  if (a->stop == Attempt::Stop::None && !write_all(part->fd, bytes, length)) stop_writing(a);
  if (a->stop != Attempt::Stop::None) return 0;
  part->hash.update(bytes, length);
  part->have += length;
  char line[64];
  const int written = snprintf(line, sizeof line, "%llu %llu\n", static_cast<unsigned long long>(part->have),
                               static_cast<unsigned long long>(a->total));
  if (write(kProgressChannel, line, static_cast<size_t>(written)) < 0) return length;  // nobody listens
  return length;
}

// The value of the first variable that is set and not empty; the list ends with a null.
const char* first_of(const char* const* names) {
  for (; *names != nullptr; ++names)
    if (const char* value = getenv(*names); value != nullptr && *value != 0) return value;
  return nullptr;
}

// libcurl reads the proxy's variables itself, but none for certificates: those are the tools' (curl,
// requests, pip).
void set_certificates(const CurlApi& api, void* curl, const Request& request) {
  constexpr const char* kFiles[] = {"SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT",
                                    nullptr};
  constexpr const char* kFolders[] = {"SSL_CERT_DIR", nullptr};
  const char* file = request.ca != nullptr ? request.ca : first_of(kFiles);
  if (file != nullptr) api.easy_setopt(curl, kOptCaInfo, file);
  if (const char* folder = first_of(kFolders)) api.easy_setopt(curl, kOptCaPath, folder);
}

CurlList* add(const CurlApi& api, CurlList* list, const char* name, const char* value) {
  char line[512];
  snprintf(line, sizeof line, "%s: %s", name, value);
  return api.slist_append(list, line);
}

// With If-Range the server sends the whole file if it no longer has that ETag (RFC 9110, 13.1.5). Without an
// ETag, as after an earlier run, only the final hash tells whether the bytes belong together.
CurlList* headers(const CurlApi& api, const Attempt& a, const char* etag) {
  CurlList* list = nullptr;
  if (a.request->accept != nullptr) list = add(api, list, "Accept", a.request->accept);
  if (a.part->have == 0) return list;
  char range[48];
  snprintf(range, sizeof range, "bytes=%llu-", static_cast<unsigned long long>(a.part->have));
  list = add(api, list, "Range", range);
  return *etag != 0 ? add(api, list, "If-Range", etag) : list;
}

void set_options(const CurlApi& api, void* curl, const char* url, Attempt* a) {
  api.easy_reset(curl);
  api.easy_setopt(curl, kOptUrl, url);
  // Redirects are followed by main.cc, which looks at each: an old libcurl cannot be told to keep to https.
  api.easy_setopt(curl, kOptProtocols, kProtocolHttp | kProtocolHttps);
  // No SIGALRM; a transfer below 64 bytes/s for `stall_s` seconds ends as timed out.
  api.easy_setopt(curl, kOptNoSignal, 1L);
  api.easy_setopt(curl, kOptNoProgress, 1L);
  api.easy_setopt(curl, kOptNetrc, kNetrcOptional);
  api.easy_setopt(curl, kOptConnectTimeout, 20L);
  api.easy_setopt(curl, kOptLowSpeedLimit, 64L);
  api.easy_setopt(curl, kOptLowSpeedTime, static_cast<long>(a->request->stall_s));
  api.easy_setopt(curl, kOptUserAgent, "scankit-fetch");
  api.easy_setopt(curl, kOptSuppressConnectHeaders, 1L);
  api.easy_setopt(curl, kOptErrorBuffer, a->why);
  api.easy_setopt(curl, kOptWriteFunction, on_body);
  api.easy_setopt(curl, kOptWriteData, a);
  api.easy_setopt(curl, kOptHeaderFunction, on_header);
  api.easy_setopt(curl, kOptHeaderData, a);
  if (!is_https(url)) api.easy_setopt(curl, kOptProxy, "");  // this machine itself
  set_certificates(api, curl, *a->request);
}

// Failures of the network, which may pass. A refused certificate or a malformed URL stays what it is.
bool worth_another(int code) {
  constexpr int kCodes[] = {kCurlProxyResolve, kCurlHostResolve, kCurlConnect,    kCurlPartialFile,
                            kCurlTimeout,      kCurlSslConnect,  kCurlGotNothing, kCurlSendError,
                            kCurlReceiveError, kCurlHttp2,       kCurlHttp2Stream};
  for (const int one : kCodes)
    if (one == code) return true;
  return false;
}

// Our own reason comes before libcurl's code, which is only CURLE_WRITE_ERROR then. 416 says that the part
// reaches beyond the file: it belongs to another one.
Ended judge(const Attempt& a) {
  if (a.stop == Attempt::Stop::OtherRange) return Ended::Fresh;
  if (a.stop != Attempt::Stop::None) return Ended::Refused;
  if (a.curl_code != 0) return worth_another(a.curl_code) ? Ended::Again : Ended::Refused;
  if (a.status >= 300 && a.status < 400 && a.moved_to[0] != 0) return Ended::Moved;
  if (a.status == 416) return a.begin > 0 ? Ended::Fresh : Ended::Refused;
  constexpr long kBusy[] = {408, 425, 429, 500, 502, 503, 504};
  for (const long busy : kBusy)
    if (a.status == busy) return Ended::Again;
  if (a.status != 200 && a.status != 206) return Ended::Refused;
  return a.total != 0 && a.part->have < a.total ? Ended::Again : Ended::Whole;
}

}  // namespace

bool restart(Part* part) {
  part->have = 0;
  part->hash = scankit::Sha256();
  return ftruncate(part->fd, 0) == 0 && lseek(part->fd, 0, SEEK_SET) == 0;
}

Ended attempt(const CurlApi& api, void* curl, const char* url, const char* etag, Attempt* a) {
  a->begin = a->part->have;
  set_options(api, curl, url, a);
  CurlList* list = headers(api, *a, etag);
  api.easy_setopt(curl, kOptHttpHeader, list);
  a->curl_code = api.easy_perform(curl);
  const char* moved = nullptr;
  if (a->curl_code == 0 && api.easy_getinfo(curl, kInfoRedirectUrl, &moved) == 0 && moved != nullptr)
    snprintf(a->moved_to, sizeof a->moved_to, "%s", moved);
  if (a->why[0] == 0 && a->curl_code != 0)
    snprintf(a->why, sizeof a->why, "%s", api.easy_strerror(a->curl_code));
  // libcurl keeps the pointer, and the handle lives on.
  api.easy_setopt(curl, kOptHttpHeader, nullptr);
  api.slist_free_all(list);
  // An empty body never came to on_body: a part of another file must not stay.
  if (a->curl_code == 0 && a->status == 200 && !a->began && !begin_body(a)) return Ended::Refused;
  return judge(*a);
}

// The most specific cause comes first: ours, the certificate, a cut connection, libcurl's, the status.
void report_error_of(const Attempt& a, const char* url) {
  using scankit_gpu::report_error;
  char place[kLongestUrl], one[24], other[24];
  shown(url, place);
  switch (a.stop) {
    case Attempt::Stop::TooLong:
      return report_error("{}: longer than the limit of {} bytes", place, in_digits(a.request->limit, one));
    case Attempt::Stop::Endless:
      return report_error(
          "{}: the server sent more than the {} bytes expected: the download was stopped after {} bytes",
          place, in_digits(a.request->size, one), in_digits(a.came, other));
    case Attempt::Stop::OtherSize:
      return report_error("{}: the file on the server has {} bytes, expected {}", place,
                          in_digits(a.total, one), in_digits(a.request->size, other));
    case Attempt::Stop::NoRoom:
      return report_error("cannot write {}: {}", a.request->out, strerror(a.write_error));
    case Attempt::Stop::OtherRange:
      return report_error("{}: the server sent a different range than requested", place);
    case Attempt::Stop::None:
      break;
  }
  if (a.curl_code == kCurlCertificate || a.curl_code == kCurlCertificateFile)
    return report_error("{}: its certificate is not trusted ({})", place, a.why);
  if (a.part->have > 0 && a.total > a.part->have && a.status < 300)
    return report_error("{}: the connection closed after {} of {} bytes", place, in_digits(a.part->have, one),
                        in_digits(a.total, other));
  if (a.curl_code != 0) return report_error("{}: no response: {}", place, a.why);
  if (a.status == 401 || a.status == 403 || a.status == 407)
    return report_error("{}: the server requires other credentials (status {})", place,
                        in_digits(static_cast<uint64_t>(a.status), one));
  if (a.status == 404 || a.status == 410)
    return report_error("{}: not found (status {})", place, in_digits(static_cast<uint64_t>(a.status), one));
  report_error("{}: the server responded with status {}", place,
               in_digits(static_cast<uint64_t>(a.status), one));
}

}  // namespace scankit_fetch

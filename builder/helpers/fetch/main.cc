// SPDX-License-Identifier: Apache-2.0
// scankit-fetch: one file by https, with the host's libcurl, into PATH.part and then,
// whole and with the right hash, into PATH. A child with a timeout, as scankit-gpu.
// Progress goes to descriptor 3, one "HAVE TOTAL" a line; the last line of stdout is
// "fetched<TAB>size=N<TAB>sha256=HEX". Statuses are those of helpers/gpu/library.h.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "builder/helpers/fetch/transfer.h"
#include "builder/helpers/gpu/library.h"

namespace scankit_fetch {
namespace {

constexpr int kMostRedirects = 10, kMostAttempts = 200;
constexpr uint64_t kLongestWait = 30000;  // ms

struct Texts {
  const char* name;
  const char** value;
};
struct Numbers {
  const char* name;
  uint64_t* value;
};

// Every option takes a value, so argc is odd. False for an unknown option or a malformed number.
bool read_request(int argc, char** argv, Request* r) {
  const Texts texts[] = {{"--url", &r->url},
                         {"--out", &r->out},
                         {"--sha256", &r->sha256},
                         {"--accept", &r->accept},
                         {"--ca", &r->ca}};
  const Numbers numbers[] = {{"--size", &r->size},
                             {"--limit", &r->limit},
                             {"--attempts", &r->attempts},
                             {"--backoff-ms", &r->backoff_ms},
                             {"--stall-s", &r->stall_s}};
  for (int i = 1; i + 1 < argc; i += 2) {
    bool taken = false;
    for (const Texts& text : texts)
      if (strcmp(argv[i], text.name) == 0) {
        *text.value = argv[i + 1];
        taken = true;
      }
    for (const Numbers& number : numbers)
      if (strcmp(argv[i], number.name) == 0) taken = parse_number(argv[i + 1], number.value);
    if (!taken) return false;
  }
  return argc % 2 == 1 && r->url != nullptr && r->out != nullptr &&
         (r->sha256 == nullptr || strlen(r->sha256) == 64);
}

// Null if the name does not fit.
const char* part_name(const Request& request, char (&name)[4096]) {
  const int length = snprintf(name, sizeof name, "%s.part", request.out);
  return length > 0 && length < static_cast<int>(sizeof name) ? name : nullptr;
}

// Empties the part. Says why where that fails: a disk with errors, a file made immutable.
bool empty_part(const char* name, Part* part) {
  if (restart(part)) return true;
  scankit_gpu::report_error("cannot empty {}: {}; delete it and try again", name, strerror(errno));
  return false;
}

// Opens the part and hashes what an earlier run left in it. Without an expected hash it cannot be
// known whether those bytes belong to this file, so the part starts empty. O_NOFOLLOW refuses a link
// that somebody planted.
bool open_part(const Request& request, const char* name, Part* part) {
  part->fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (part->fd < 0) {
    scankit_gpu::report_error("cannot write {}: {}", name, strerror(errno));
    return false;
  }
  if (lseek(part->fd, 0, SEEK_SET) != 0) {  // a FIFO would be read for ever; fstat is newer than our glibc
    scankit_gpu::report_error("cannot write {}: it is not a regular file", name);
    return false;
  }
  if (request.sha256 == nullptr) return empty_part(name, part);
  static char piece[1 << 16];
  for (;;) {
    const ssize_t got = read(part->fd, piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      scankit_gpu::report_error("cannot read {}, which an earlier download left: {}; delete it and try again",
                                name, strerror(errno));
      return false;
    }
    if (got == 0) break;
    part->hash.update(piece, static_cast<size_t>(got));
    part->have += static_cast<uint64_t>(got);
    if (part->have > request.limit) break;  // a device has no end
  }
  const bool too_long = part->have > request.limit || (request.size != 0 && part->have > request.size);
  return too_long ? empty_part(name, part) : true;
}

// Takes a copy: finish() would end the hash that the part still updates.
void hex_of(scankit::Sha256 hash, char (&text)[65]) {
  unsigned char digest[32];
  hash.finish(digest);
  for (int i = 0; i < 32; ++i) snprintf(text + 2 * i, 3, "%02x", digest[i]);
}

void wait_ms(uint64_t ms) {
  timespec left = {static_cast<time_t>(ms / 1000), static_cast<long>(ms % 1000) * 1000000};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) continue;
}

// Repeats attempts until the file is complete, one of them is final, or too many in a row bring nothing.
// Bytes that arrived stay in the part, so each attempt continues where the last one ended.
class Download {
 public:
  Download(const Request& request, const CurlApi& api, Part* part)
      : request_(request), api_(api), curl_(api.easy_init()), part_(part) {}
  Download(const Download&) = delete;
  Download& operator=(const Download&) = delete;
  ~Download() { api_.easy_cleanup(curl_); }

  // What came is the beginning of a longer file: no later run can go on there.
  bool worthless() const { return worthless_; }

  // Until the file is whole, or one attempt says that no other will do.
  bool run() {
    if (curl_ == nullptr) return false;
    uint64_t in_vain = 0, furthest = part_->have;
    for (int count = 0; count < kMostAttempts; ++count) {
      Attempt a;
      a.request = &request_;
      a.part = part_;
      char url[kLongestUrl];
      const Ended ended = follow(&a, url);
      if (ended == Ended::Whole) return true;
      worthless_ = a.stop == Attempt::Stop::Endless || a.stop == Attempt::Stop::TooLong;
      if (ended == Ended::Refused) return false;
      // The part is of another file. An update on the server explains one or two such answers.
      if (ended == Ended::Fresh) {
        etag_[0] = 0;
        if (fresh_++ > 1 || !restart(part_)) return refuse(a, url);
        continue;
      }
      // A server without ranges begins anew each time: only what no attempt had reached is progress.
      in_vain = part_->have > furthest ? 1 : in_vain + 1;
      if (part_->have > furthest) furthest = part_->have;
      if (in_vain >= request_.attempts) return refuse(a, url);
      wait_ms(pause(a, in_vain));
    }
    char place[kLongestUrl], one[24];
    scankit_gpu::report_error("{}: not complete after {} attempts", shown(request_.url, place),
                              in_digits(kMostAttempts, one));
    return false;
  }

 private:
  static bool refuse(const Attempt& a, const char* url) {
    report_error_of(a, url);
    return false;
  }

  // Milliseconds: the backoff, doubled with each attempt in vain, or a longer Retry-After.
  uint64_t pause(const Attempt& a, uint64_t in_vain) const {
    uint64_t ms = request_.backoff_ms << (in_vain < 8 ? in_vain - 1 : 7);
    if (a.retry_after_s * 1000 > ms) ms = a.retry_after_s * 1000;
    return ms < kLongestWait ? ms : kLongestWait;
  }

  // One attempt with its redirects, from the first URL each time: the last one's may be for a single use.
  Ended follow(Attempt* a, char (&url)[kLongestUrl]) {
    snprintf(url, sizeof url, "%s", request_.url);
    for (int hops = 0; hops <= kMostRedirects; ++hops) {
      Attempt one = *a;
      const Ended ended = attempt(api_, curl_, url, etag_, &one);
      if (one.etag[0] != 0 && one.began) memcpy(etag_, one.etag, sizeof etag_);
      *a = one;
      if (ended != Ended::Moved) {
        if (ended == Ended::Refused) report_error_of(*a, url);
        return ended;
      }
      if (!may_ask(one.moved_to) || (is_https(url) && !is_https(one.moved_to))) {
        char from[kLongestUrl], to[kLongestUrl];
        scankit_gpu::report_error("{} redirects to {}, but only https is followed", shown(url, from),
                                  shown(one.moved_to, to));
        return Ended::Refused;
      }
      snprintf(url, sizeof url, "%s", one.moved_to);
      a->moved_to[0] = 0;
    }
    char from[kLongestUrl];
    scankit_gpu::report_error("{} redirects more than 10 times", shown(request_.url, from));
    return Ended::Refused;
  }

  const Request& request_;
  const CurlApi& api_;
  void* curl_;
  Part* part_;
  char etag_[256] = "";
  int fresh_ = 0;
  bool worthless_ = false;
};

// Size and hash; a part with other bytes is worth nothing to a later run.
bool judge_part(const Request& request, const char* name, const Part& part, char (&hash)[65]) {
  hex_of(part.hash, hash);
  char place[kLongestUrl], one[24], other[24];
  shown(request.url, place);
  const bool size_fits = request.size == 0 || part.have == request.size;
  if (!size_fits)
    scankit_gpu::report_error("{}: received {} bytes, expected {}", place, in_digits(part.have, one),
                              in_digits(request.size, other));
  const bool hash_fits = request.sha256 == nullptr || strcmp(hash, request.sha256) == 0;
  if (size_fits && !hash_fits)
    scankit_gpu::report_error("{}: its sha256 is {}, expected {}", place, hash, request.sha256);
  if (!size_fits || !hash_fits) unlink(name);
  return size_fits && hash_fits;
}

// Downloads into the part and renames it to --out. If the download fails, the part stays for the next run if
// a hash is known that can judge it; otherwise it is removed.
int fetch(const Request& request, const CurlApi& api) {
  char name[4096];
  if (part_name(request, name) == nullptr) {
    scankit_gpu::report_error("--out {}: the path is too long; choose a shorter one", request.out);
    return scankit_gpu::kUsage;
  }
  Part part;
  if (!open_part(request, name, &part)) return scankit_gpu::kFailed;
  const uint64_t left_over = part.have;
  char hash[65];
  Download download(request, api, &part);
  // A whole file that was not yet renamed needs no server.
  hex_of(part.hash, hash);
  const bool there = part.have > 0 && request.sha256 != nullptr && strcmp(hash, request.sha256) == 0;
  if (!there && !download.run()) {
    if (part.have == 0 || request.sha256 == nullptr || download.worthless()) unlink(name);
    return scankit_gpu::kFailed;
  }
  hex_of(part.hash, hash);
  // What an earlier run left may have been of another file: once more, from its first byte.
  if (left_over > 0 && request.sha256 != nullptr && strcmp(hash, request.sha256) != 0 &&
      (!empty_part(name, &part) || !download.run())) {
    if (download.worthless()) unlink(name);
    return scankit_gpu::kFailed;
  }
  if (!judge_part(request, name, part, hash)) return scankit_gpu::kFailed;
  if (fsync(part.fd) != 0 || rename(name, request.out) != 0) {
    scankit_gpu::report_error("cannot write {}: {}", request.out, strerror(errno));
    return scankit_gpu::kFailed;
  }
  printf("fetched\tsize=%llu\tsha256=%s\n", static_cast<unsigned long long>(part.have), hash);
  return scankit_gpu::kOk;
}

// Without a channel the next file that is opened would be number 3, and progress would be written into it.
void reserve_channel() {
  int fd = 0;
  do fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  while (fd >= 0 && fd <= kProgressChannel);
  if (fd > kProgressChannel) close(fd);
}

int run(int argc, char** argv) {
  reserve_channel();
  Request request;
  if (!read_request(argc, argv, &request)) {
    fputs(
        "usage: scankit-fetch --url URL --out FILE [--sha256 HEX] [--size N] [--limit N] [--accept TYPES] "
        "[--ca FILE] "
        "[--attempts N] [--backoff-ms N] [--stall-s N]\n",
        stderr);
    return scankit_gpu::kUsage;
  }
  if (!may_ask(request.url)) {
    char place[kLongestUrl];
    scankit_gpu::report_error("{}: only https is supported", shown(request.url, place));
    return scankit_gpu::kUsage;
  }
  CurlApi api;
  if (!load_curl(&api)) return scankit_gpu::kAbsent;
  constexpr long kGlobalDefault = 3;
  if (api.global_init(kGlobalDefault) != 0) return scankit_gpu::kFailed;
  signal(SIGPIPE, SIG_IGN);
  return fetch(request, api);
}

}  // namespace
}  // namespace scankit_fetch

int main(int argc, char** argv) { return scankit_fetch::run(argc, argv); }

// SPDX-License-Identifier: Apache-2.0
#include "builder/installer/fetch/download.h"

#include <string_view>

#include "doctor/base/say.h"
#include "doctor/host/embedded_program.h"
#include "doctor/host/gpu_helper.h"

extern "C" const char scankit_fetch_helper[];
extern "C" const char scankit_fetch_helper_end[];

namespace scankit {
namespace {

constexpr auto kDownloadTimeout = std::chrono::minutes(60);

// "HAVE TOTAL\n", in pieces of any length.
class ProgressReader {
 public:
  explicit ProgressReader(const DownloadRequest& request) : request_(request) {}
  void take(std::string_view piece) {
    for (const char c : piece) {
      if (c != '\n') {
        line_ += c;
        continue;
      }
      const auto blank = line_.find(' ');
      if (request_.progress && blank != std::string::npos && blank > 0 && line_.size() < 48)
        request_.progress(std::strtoull(line_.c_str(), nullptr, 10),
                          std::strtoull(line_.c_str() + blank, nullptr, 10));
      line_.clear();
    }
  }

 private:
  const DownloadRequest& request_;
  std::string line_;
};

std::vector<std::string> arguments(const DownloadRequest& request) {
  std::vector<std::string> all = {"--url",        request.url,
                                  "--out",        request.out,
                                  "--limit",      std::to_string(request.limit),
                                  "--attempts",   std::to_string(request.attempts),
                                  "--backoff-ms", std::to_string(request.backoff.count()),
                                  "--stall-s",    std::to_string(request.stall.count())};
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) all.insert(all.end(), {name, value});
  };
  add("--sha256", request.sha256);
  add("--accept", request.accept);
  add("--ca", request.certificates);
  if (request.size != 0) add("--size", std::to_string(request.size));
  return all;
}

}  // namespace

Result<void> download(const DownloadRequest& request) {
  static EmbeddedProgram program(
      "scankit-fetch",
      {scankit_fetch_helper, static_cast<std::size_t>(scankit_fetch_helper_end - scankit_fetch_helper)});
  ProgressReader reader(request);
  ProcessRequest process;
  process.argv = arguments(request);
  process.timeout = kDownloadTimeout;
  process.capture_channel = true;
  process.output_limit = 1u << 16;
  process.on_channel = [&](std::string_view piece) { reader.take(piece); };
  SCANKIT_TRY(const ProcessResult ran, program.run(std::move(process)));
  if (ran.ok()) return {};
  const std::string why = retold(ran.err.substr(0, ran.err.find('\n')));
  if (ran.timed_out)
    return Error{Errc::Timeout, say("the download did not end within an hour"),
                 say("try again: it goes on where it was")};
  if (ran.signal != 0 || why.empty())
    return Error{Errc::ToolFailed, say("scankit-fetch died, of signal {}", ran.signal),
                 say("bring the file by hand")};
  if (ran.exit_code == kHelperAbsent)
    return Error{
        Errc::Unsupported, why,
        say("install it (Debian: libcurl4, others: libcurl), or install pip or uv, which need none")};
  return Error{
      Errc::ToolFailed, why,
      say("look at the index that is configured, at https_proxy, and at the certificates (SSL_CERT_FILE)")};
}

}  // namespace scankit

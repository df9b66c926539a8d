// SPDX-License-Identifier: Apache-2.0
#include "builder/installer/fetch/wheel_fetcher.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "builder/installer/installer.h"
#include "doctor/base/files.h"
#include "doctor/base/machine.h"
#include "doctor/base/say.h"
#include "doctor/host/embedded_program.h"
#include "doctor/probes/target/wheel.h"
#include "doctor/report/progress.h"

extern "C" const char scankit_fetch_helper[];
extern "C" const char scankit_fetch_helper_end[];

namespace scankit::installer {
namespace {

constexpr auto kDownloadTimeout = std::chrono::minutes(60);

// Takes the helper's lines "HAVE TOTAL\n" in pieces of any length and reports each complete line.
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

// The options of scankit-fetch (helpers/fetch/main.cc); what is empty or 0 is left out.
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

// Turns the helper's exit status and its first line on stderr, which is English, into an Error.
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
  const std::string why = ran.err.substr(0, ran.err.find('\n'));
  if (ran.timed_out)
    return Error{Errc::Timeout, message("the download took longer than an hour"),
                 message("try again: it continues the download")};
  if (ran.signal != 0 || why.empty())
    return Error{Errc::ToolFailed, message("scankit-fetch was killed by signal {}", ran.signal),
                 message("copy the file to this machine yourself")};
  if (ran.exit_code == kHelperAbsent)
    return Error{
        Errc::Unsupported, why,
        message(
            "install it (Debian: libcurl4, others: libcurl), or install pip or uv, which do not need it")};
  return Error{Errc::ToolFailed, why,
               message("check the configured index, https_proxy, and the certificates (SSL_CERT_FILE)")};
}

namespace {

constexpr std::uint64_t kPageLimit = 32u << 20;

// Downloads and unpacks pinned wheels, one after the other. A complete download is removed after it was
// unpacked; a cut one stays in `downloads` as NAME.part.
class Fetcher {
 public:
  Fetcher(IndexSettings settings, std::string downloads, report::Progress& progress)
      : settings_(std::move(settings)), downloads_(std::move(downloads)), progress_(progress) {}

  Result<void> fetch(const toolchain::WheelPin& wheel, const std::string& folder) {
    SCANKIT_TRY(const IndexFile file, find(wheel));
    progress_.act(say("fetching {} ({} MB)", file.name, (wheel.size + 500000) / 1000000));
    DownloadRequest request;
    request.url = file.url;
    request.out = path_join(downloads_, path_basename(file.name));
    request.sha256 = wheel.sha256;
    request.size = wheel.size;
    request.certificates = settings_.certificates;
    request.progress = [&](std::uint64_t have, std::uint64_t total) { progress_.bytes(have, total); };
    SCANKIT_CHECK(download(request));
    progress_.now(say("unpacking {}", file.name));
    auto unpacked = probes::unpack_whole_wheel(request.out, folder);
    ::unlink(request.out.c_str());
    return unpacked;
  }

 private:
  // Asks the indexes in order and takes the first that has the wheel. If none has it, the result is the Error
  // of the last one.
  Result<IndexFile> find(const toolchain::WheelPin& wheel) {
    const std::string name = required_name(wheel.name);
    Error last;
    for (const IndexSettings::Index& index : settings_.indexes) {
      progress_.act(say("querying the index of {} for {}", index.from, wheel.name));
      auto found = find_in(project_url(index.url, name), wheel);
      if (found) return found;
      last = found.error();
      if (last.code == Errc::Unsupported) break;  // no libcurl: no index can be asked
      last.hint = message("the index is configured by {}", index.from);
    }
    return last;
  }

  // A page has no known hash, so its download always starts at the first byte.
  Result<IndexFile> find_in(const std::string& url, const toolchain::WheelPin& wheel) const {
    DownloadRequest request;
    request.url = url;
    request.out = path_join(downloads_, "index-" + sha256_hex(url).substr(0, 16));
    request.limit = kPageLimit;
    request.accept = kIndexTypes;
    request.certificates = settings_.certificates;
    SCANKIT_CHECK(download(request));
    auto page = read_whole_file(request.out, kPageLimit);
    ::unlink(request.out.c_str());
    if (!page) return page.error();
    SCANKIT_TRY(const auto files, parse_index_page(*page, url));
    return choose(files, wheel);
  }

  // The file with the pinned hash. An index that gives no hashes is believed by the file's name; the hash of
  // the downloaded bytes decides then. Only wheels for this processor count, as in the table of pins.
  static Result<IndexFile> choose(const std::vector<IndexFile>& files, const toolchain::WheelPin& wheel) {
    std::string stem = required_name(wheel.name);
    std::ranges::replace(stem, '-', '_');
    bool other_hash = false;
    const IndexFile* by_name = nullptr;
    for (const IndexFile& file : files) {
      if (!file.name.starts_with(stem + "-" + wheel.version + "-") ||
          !file.name.ends_with(std::string(kMachine) + ".whl"))
        continue;
      if (file.sha256 == wheel.sha256) return file;
      other_hash = other_hash || !file.sha256.empty();
      if (file.sha256.empty()) by_name = &file;
    }
    if (by_name != nullptr) return *by_name;
    if (other_hash)
      return Error{Errc::Malformed,
                   message("the index has {}=={} with another sha256 than {}", wheel.name, wheel.version,
                           wheel.sha256),
                   ""};
    return Error{Errc::NotFound,
                 message("the index has no {}=={} for {}", wheel.name, wheel.version, kMachine), ""};
  }

  IndexSettings settings_;
  std::string downloads_;
  report::Progress& progress_;
};

}  // namespace

toolchain::WheelFetcher wheel_fetcher(const std::string& cache_folder) {
  return [cache_folder](const std::vector<toolchain::WheelPin>& wheels,
                        const std::string& folder) -> Result<void> {
    const auto host = make_real_host();
    const IndexSettings settings = index_settings(*host);
    if (settings.indexes.empty())
      return Error{Errc::NotFound,
                   message("neither pip nor uv is installed, and no package index is configured"),
                   how_to_name_an_index()};
    std::optional<TemporaryDirectory> aside;  // without a cache nothing waits for the next run
    if (cache_folder.empty()) {
      SCANKIT_TRY(auto made, TemporaryDirectory::create("scankit-downloads"));
      aside.emplace(std::move(made));
    }
    const std::string downloads = path_join(aside ? aside->path() : cache_folder, "downloads");
    SCANKIT_CHECK(make_private_folders(downloads));
    report::Progress progress;
    Fetcher fetcher(settings, downloads, progress);
    for (std::size_t i = 0; i < wheels.size(); ++i) {
      progress.count(i, wheels.size());
      SCANKIT_CHECK(fetcher.fetch(wheels[i], folder));
    }
    return {};
  };
}

}  // namespace scankit::installer

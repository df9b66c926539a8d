// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include "builder/installer/fetch/download.h"
#include "builder/installer/fetch/index_settings.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/cli/commands.h"
#include "doctor/report/progress.h"
#include "envspec/cli/lock_commands.h"

namespace scankit {
namespace {

constexpr std::uint64_t kMostBytes = 16ull << 30;

struct Fetched {
  unsigned there = 0, brought = 0, nowhere = 0;
};

Result<void> fetch_one(const LockedDistribution& one, const std::string& folder,
                       const std::string& certificates, Fetched& count) {
  const LockedArtifact& artifact = *one.artifact;
  DownloadRequest request;
  request.out = path_join(folder, artifact.file);
  Progress progress(say("fetching {}", artifact.file));
  if (const auto there = sha256_file(request.out); there && *there == artifact.sha256) {
    ++count.there;
    return {};
  }
  request.url = artifact.url;
  request.sha256 = artifact.sha256;
  request.size = artifact.size;
  request.limit = kMostBytes;
  request.certificates = certificates;
  request.progress = [&](std::uint64_t have, std::uint64_t total) { progress.bytes(have, total); };
  SCANKIT_CHECK(download(request));
  ++count.brought;
  return {};
}

Result<Fetched> fetch_all(const EnvFetchOptions& options, const EnvironmentLock& lock) {
  const std::string folder = options.out.empty() ? "scankit-wheels" : options.out;
  SCANKIT_CHECK(make_directories(folder));
  const std::string certificates = index_settings(*make_real_host()).certificates;
  Progress progress;
  Fetched count;
  std::size_t done = 0;
  for (const LockedDistribution& one : lock.distributions) {
    progress.count(done++, lock.distributions.size());
    if (one.artifact && !one.artifact->url.empty()) {
      SCANKIT_CHECK(fetch_one(one, folder, certificates, count));
      continue;
    }
    // What was built here may lie there from an export.
    const auto there =
        one.artifact ? sha256_file(path_join(folder, one.artifact->file)) : Result<std::string>(Error{});
    if (there && *there == one.artifact->sha256) {
      ++count.there;
      continue;
    }
    ++count.nowhere;
    const std::string why = one.artifact ? say("the lock knows no URL of it") : one.why_no_artifact;
    progress_note(say("not fetched: {}=={}: {}", one.name, one.version, why));
  }
  return count;
}

}  // namespace

int run_env_fetch(const EnvFetchOptions& options) {
  const auto lock = read_lock(options.lock.empty() ? kLockFile : options.lock);
  if (!lock) {
    complain(lock.error());
    return kExitUsage;
  }
  const auto count = fetch_all(options, *lock);
  if (!count) {
    complain(count.error());
    const bool usage = count.error().code == Errc::InvalidArgument || count.error().code == Errc::Unsupported;
    return usage ? kExitUsage : kExitFindings;
  }
  std::cout << say("{} fetched, {} there already, {} that no URL is known of", count->brought, count->there,
                   count->nowhere)
            << "\n";
  return count->nowhere == 0 ? kExitClean : kExitInconclusive;
}

}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <iostream>
#include <optional>
#include <sstream>

#include "builder/compile/cache.h"
#include "builder/installer/fetch/wheel_fetcher.h"
#include "builder/installer/installer.h"
#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/cli/commands.h"
#include "doctor/report/progress.h"
#include "envspec/cli/commands.h"
#include "envspec/create/conda.h"
#include "envspec/index/index.h"
#include "envspec/lock/install_metadata.h"
#include "envspec/lock/lock.h"
#include "envspec/spec/spec.h"

// `scankit env lock` and `env fetch`.
namespace scankit::envspec {
namespace {

// The lock names its spec only by its SHA-256; `env check` judges what the spec demands. "" without a
// spec; one that does not parse is an error.
Result<std::string> hash_of_spec(const std::string& asked) {
  const std::string file = asked.empty() ? kSpecFile : asked;
  auto hash = sha256_file(file);
  if (!hash && asked.empty() && hash.error().code == Errc::NotFound) return std::string();
  if (!hash) return hash.error();
  SCANKIT_TRY(const Spec spec, read_spec(file));
  return hash;
}

// The lock that the new one will replace: it knows what the index said about the same versions. A lock
// that was edited is not believed.
std::optional<EnvironmentLock> older_lock(const std::string& path) {
  auto lock = read_lock(path);
  if (lock) return *std::move(lock);
  if (lock.error().code != Errc::NotFound)
    report::progress_note(say("nothing is reused from the old lock: {}", lock.error().message));
  return std::nullopt;
}

// uv is asked first where it is on PATH: it resolves a hundred packages in a second, and pip before 25.3
// downloads each wheel. Asking changes nothing in the environment, whoever made it. The environment's own
// installer is then asked for what uv does not find.
void choose_installers(const Host& host, const Snapshot& snapshot, ResolveRequest& request) {
  request.installer = installer::downloader_of(host, snapshot);
  const Python& python = snapshot.python.value;
  if (request.installer.kind != installer::Installer::Kind::Pip ||
      installer::pip_has_its_own_index(host, python))
    return;
  std::istringstream folders(host.env("PATH").value_or(""));
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string program = path_join(folder, "uv");
    if (!folder.starts_with('/') || ::access(program.c_str(), X_OK) != 0 || host.is_directory(program))
      continue;
    request.second = request.installer;
    request.installer = {.kind = installer::Installer::Kind::Uv,
                         .program = {program},
                         .environment = python.executable,
                         .why = say("uv is on PATH")};
    return;
  }
}

}  // namespace

// The order matters: facts and files first, since an error there ends the command, and then the index,
// whose failures only leave artifacts empty. Under --root no installer of this machine fits, and no
// index is asked.
Result<EnvironmentLock> lock_environment(const EnvLockOptions& options, const Subject& subject,
                                         const std::string& out) {
  if (subject.host == nullptr)
    return Error{Errc::InvalidArgument, message("a snapshot contains no files, so nothing can be hashed"),
                 message("lock on the machine itself, or an image with --root")};
  if (!subject.snapshot.python.present())
    return Error{Errc::InvalidArgument,
                 message("no environment to lock: {}", tr(subject.snapshot.python.note)),
                 message("choose one with --python")};
  SCANKIT_TRY(const std::string spec, hash_of_spec(options.spec));
  SCANKIT_TRY(const std::string cache, compile::usable_cache_folder(options.cache_dir));
  EnvironmentLock lock = lock_facts(subject.snapshot);
  lock.spec_sha256 = spec;
  lock.conda_packages = conda_packages(*subject.host, subject.snapshot.python.value.prefix);
  std::optional<report::Progress> progress(say("hashing the libraries of the packages"));
  HashCache hashes(cache);
  const auto hashed = [&](std::uint64_t done, std::uint64_t of) { progress->bytes(done, of); };
  SCANKIT_CHECK(lock_files(*subject.host, subject.snapshot, hashes, hashed, lock));
  const auto older = out == "-" ? std::nullopt : older_lock(out);
  ResolveRequest request;
  if (subject.host->is_live()) choose_installers(*subject.host, subject.snapshot, request);
  if (request.installer.kind == installer::Installer::Kind::None &&
      options.made_by.kind != installer::Installer::Kind::None)
    request.installer = options.made_by;
  request.older = older ? &*older : nullptr;
  request.offline = options.offline;
  request.node_deadline = std::chrono::seconds(options.node_deadline);
  request.progress = [&](const std::string& phase) { progress->act(phase, request.node_deadline); };
  request.part = [&](std::size_t done, std::size_t of) { progress->count(done, of); };
  const auto notes = resolve_artifacts(*subject.host, subject.snapshot, request, lock);
  progress.reset();
  for (const std::string& note : notes) report::progress_note(note);
  return lock;
}

namespace {

void summarise(const EnvironmentLock& lock, const std::string& out) {
  std::size_t known = 0;
  for (const LockedDistribution& one : lock.distributions) known += one.artifact ? 1 : 0;
  report::progress_note(say("{}: {} packages, {} of them with the hash of their wheel; {} libraries", out,
                            lock.distributions.size(), known, lock.libraries.size()));
  for (const LockedDistribution& one : lock.distributions)
    if (!one.artifact)
      report::progress_note(say("no hash of {}=={}: {}", one.name, one.version, said(one.why_no_artifact)));
}

}  // namespace

int run_env_lock(const EnvLockOptions& options) {
  auto subject = look_at(options.subject);
  if (!subject) {
    cli::report_error(subject.error());
    return cli::exit_status_of(subject.error());
  }
  for (const Message& note : subject->notes) report::progress_note(tr(note));
  if (subject->status != 0) return subject->status;
  const std::string out = options.out.empty() ? kLockFile : options.out;
  const auto lock = lock_environment(options, *subject, out);
  if (lock && out == "-") {
    std::cout << lock_to_json(*lock);
    return kExitClean;
  }
  const auto written = lock ? write_output(out, lock_to_json(*lock)) : Result<void>(lock.error());
  if (!written) {
    cli::report_error(written.error());
    return cli::exit_status_of(written.error());
  }
  summarise(*lock, out);
  return kExitClean;
}

namespace {

// The largest file that `env fetch` accepts where the lock does not know the size.
constexpr std::uint64_t kMostBytes = 16ull << 30;

// conda's packages are files like any other; what conda installed for Python is among them.
EnvironmentLock with_files_of_conda(EnvironmentLock lock) {
  const std::vector<CondaPackage> packages = packages_of_conda(lock);
  if (packages.empty()) return lock;
  std::erase_if(lock.distributions, [](const LockedDistribution& one) { return one.source == "conda"; });
  for (const CondaPackage& one : packages) {
    LockedDistribution file{.name = one.name, .version = one.version};
    if (!one.url.empty() && !one.sha256.empty())
      file.artifact = {.file = path_basename(one.url), .sha256 = one.sha256, .url = one.url};
    else
      file.why_no_artifact = say("conda recorded no URL or no SHA-256 for it");
    lock.distributions.push_back(std::move(file));
  }
  return lock;
}

// Counts of distributions: already in the directory, downloaded, without a URL.
struct Fetched {
  unsigned there = 0, brought = 0, nowhere = 0;
};

// The hash is compared before anything is downloaded, so that an interrupted fetch can
// be repeated cheaply.
Result<void> fetch_one(const LockedDistribution& one, const std::string& folder,
                       const std::string& certificates, Fetched& count) {
  const LockedArtifact& artifact = *one.artifact;
  installer::DownloadRequest request;
  request.out = path_join(folder, artifact.file);
  report::Progress progress(say("downloading {}", artifact.file));
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
  SCANKIT_CHECK(installer::download(request));
  ++count.brought;
  return {};
}

Result<Fetched> fetch_all(const EnvFetchOptions& options, const EnvironmentLock& lock) {
  const std::string folder = options.out.empty() ? "scankit-wheels" : options.out;
  SCANKIT_CHECK(make_directories(folder));
  const std::string certificates = installer::index_settings(*make_real_host()).certificates;
  report::Progress progress;
  Fetched count;
  std::size_t done = 0;
  for (const LockedDistribution& one : lock.distributions) {
    progress.count(done++, lock.distributions.size());
    if (one.artifact && !one.artifact->url.empty()) {
      SCANKIT_CHECK(fetch_one(one, folder, certificates, count));
      continue;
    }
    // A wheel that was built locally has no URL, but an export may have put it into the same directory.
    const auto there =
        one.artifact ? sha256_file(path_join(folder, one.artifact->file)) : Result<std::string>(Error{});
    if (there && *there == one.artifact->sha256) {
      ++count.there;
      continue;
    }
    ++count.nowhere;
    const std::string why = one.artifact ? say("the lock has no URL for it") : said(one.why_no_artifact);
    report::progress_note(say("not downloaded: {}=={}: {}", one.name, one.version, why));
  }
  return count;
}

}  // namespace

int run_env_fetch(const EnvFetchOptions& options) {
  const auto lock = read_lock(options.lock.empty() ? kLockFile : options.lock);
  if (!lock) {
    cli::report_error(lock.error());
    return kExitUsage;
  }
  const auto count = fetch_all(options, with_files_of_conda(*lock));
  if (!count) {
    cli::report_error(count.error());
    const bool usage = count.error().code == Errc::InvalidArgument || count.error().code == Errc::Unsupported;
    return usage ? kExitUsage : kExitFindings;
  }
  std::cout << say("{} downloaded, {} already there, {} without a known URL", count->brought, count->there,
                   count->nowhere)
            << "\n";
  return count->nowhere == 0 ? kExitClean : kExitInconclusive;
}

}  // namespace scankit::envspec

// SPDX-License-Identifier: Apache-2.0
// The venv and its packages, by the user's own uv or pip: their index, mirror, proxy and credentials apply.
#include <sys/statvfs.h>

#include <algorithm>

#include "builder/fix/execute.h"
#include "builder/fix/transaction.h"
#include "builder/installer/fetch/wheel_fetcher.h"
#include "doctor/base/process.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/report/progress.h"
#include "envspec/create/create.h"
#include "envspec/export/export.h"
#include "envspec/index/index.h"

namespace scankit::envspec {
namespace {

constexpr std::uint64_t kDiskIsFull = 8u << 20;  // bytes left: what an installer needs for one more file
constexpr std::uint64_t kMostWheelBytes = 16ull << 30;

std::string python_of(const InstallRequest& request) { return path_join(request.environment, "bin/python"); }

// As an Error where the file system has no space left, which the installers say in many ways. They remove the
// file that did not fit, so that there may be room for all but the largest one.
Result<void> check_disk(const std::string& folder, const EnvironmentLock& lock) {
  std::uint64_t needed = kDiskIsFull;
  for (const LockedDistribution& one : lock.distributions)
    if (one.artifact) needed = std::max(needed, one.artifact->size);
  for (const LockedLibrary& one : lock.libraries) needed = std::max(needed, one.size);
  struct statvfs info {};
  if (::statvfs(folder.c_str(), &info) != 0) return {};
  const std::uint64_t left = std::uint64_t{info.f_bavail} * info.f_frsize;
  if (left >= needed) return {};
  return Error{
      Errc::Io,
      message("the installation failed, and the disk of {} is full: {} are left, and one file needs {}",
              path_dirname(path_dirname(folder)), size_in_words(left), size_in_words(needed)),
      message("free some space, or choose a directory on another disk")};
}

Result<void> run_quietly(const std::vector<std::string>& argv) {
  ProcessRequest process;
  process.argv = argv;
  process.working_directory = "/";  // `python -m venv` would take a stranger's venv/ of the current directory
  process.timeout = std::chrono::minutes(5);
  SCANKIT_TRY(const ProcessResult result, run_process(process));
  SCANKIT_CHECK(fix::Interruption::check());
  if (result.ok()) return {};
  const std::string_view said = trimmed(result.err.empty() ? result.out : result.err);
  return Error{Errc::ToolFailed,
               message("`{}` failed: {}", shell_line(argv), std::string(said.substr(said.rfind('\n') + 1))),
               ""};
}

// ensurepip's pip in a venv of our own: the environment gets only what the lock says.
Result<std::string> pip_package(const InstallRequest& request) {
  if (!request.installer.program.empty()) return request.installer.program;
  const std::string venv = path_join(request.tools, "pip");
  if (!make_real_host()->exists(venv)) SCANKIT_CHECK(run_quietly({request.base, "-m", "venv", venv}));
  const auto host = make_real_host();
  const auto folders = host->list(path_join(venv, "lib"));
  for (const DirEntry& entry : folders ? *folders : std::vector<DirEntry>())
    if (std::string pip = path_join(venv, "lib/" + entry.name + "/site-packages/pip");
        host->is_directory(pip))
      return pip;
  return Error{Errc::ToolFailed, message("{} made no pip in {}", request.base, venv), ""};
}

}  // namespace

// The words that begin each command. pip runs in the environment's own Python without being installed there,
// from its directory (`python DIR/pip` works with every pip; `pip --python` only from 22.3 on).
Result<installer::Installer> installer_for(const InstallRequest& request) {
  installer::Installer installer;
  installer.kind = request.installer.kind;
  installer.environment = python_of(request);
  if (installer.kind == installer::Installer::Kind::Uv) {
    installer.program = {request.installer.program};
    return installer;
  }
  SCANKIT_TRY(const std::string pip, pip_package(request));
  installer.program = {python_of(request), pip};
  return installer;
}

namespace {

// What both kinds of installation have in common. --ignore-installed: pip sees itself as installed, since it
// runs from its own directory.
std::vector<std::string> install_words(const InstallRequest& request, const installer::Installer& installer) {
  std::vector<std::string> argv = installer.program;
  if (installer.kind == installer::Installer::Kind::Uv)
    argv.insert(argv.end(), {"pip", "install", "--python", installer.environment});
  else
    argv.insert(argv.end(), {"--disable-pip-version-check", "--no-input", "install", "--no-compile",
                             "--no-warn-script-location"});
  if (installer.kind == installer::Installer::Kind::Pip && !request.over_installed)
    argv.emplace_back("--ignore-installed");
  if (request.offline) argv.emplace_back("--no-index");
  for (const std::string& folder : request.find_links) argv.insert(argv.end(), {"--find-links", folder});
  return argv;
}

// A setting that asks for --user makes every pip install into a venv fail.
installer::InstallerCommand command_of(std::vector<std::string> argv, const installer::Installer& installer) {
  return {std::move(argv), {"PIP_USER=0", "PYTHONDONTWRITEBYTECODE=1"}, installer::folder_of(installer), {}};
}

bool wheels_only(const EnvironmentLock& lock) {
  return std::ranges::all_of(lock.distributions, [](const LockedDistribution& one) {
    return !one.artifact || one.artifact->file.ends_with(".whl");
  });
}

}  // namespace

installer::InstallerCommand locked_install(const InstallRequest& request,
                                           const installer::Installer& installer,
                                           const std::string& requirements, bool only_wheels) {
  std::vector<std::string> argv = install_words(request, installer);
  argv.insert(argv.end(), {"--no-deps", "--require-hashes"});
  if (request.over_installed) argv.emplace_back("--force-reinstall");  // also of the same version
  if (only_wheels) argv.insert(argv.end(), {"--only-binary", ":all:"});
  argv.insert(argv.end(), {"-r", requirements});
  return command_of(std::move(argv), installer);
}

namespace {

// One package that the index does not have.
struct Lacking {
  const LockedDistribution* locked;
  std::string why;
};

std::string why_not_offered(const IndexReply& reply, const LockedDistribution& one) {
  if (const auto source = reply.sources.find(one.name); source != reply.sources.end())
    if (source->second.sha256 == one.artifact->sha256) return "";
  const auto offered = reply.offered.find(one.name);
  if (offered == reply.offered.end()) {
    const auto refused = reply.refused.find(one.name);
    return refused == reply.refused.end() ? say("the index was not queried") : refused->second;
  }
  for (const LockedArtifact& file : offered->second)
    if (file.sha256 == one.artifact->sha256) return "";
  return say("the index has another file of this version: {}", offered->second.front().file);
}

// All packages that the index lacks, where an installer names only the first.
std::vector<Lacking> lacking(const InstallRequest& request, const installer::Installer& installer,
                             const EnvironmentLock& lock, const FoundWheels& found) {
  IndexRequest asked{
      .installer = installer, .questions = {}, .node_deadline = request.index_deadline, .progress = {}};
  std::vector<const LockedDistribution*> open;
  for (const LockedDistribution& one : lock.distributions)
    if (one.artifact && !found.contains(one.name)) {
      asked.questions.push_back({one.name, one.version});
      open.push_back(&one);
    }
  if (open.empty()) return {};
  report::Progress progress(
      say_n(open.size(), "asking the index for {} package", "asking the index for {} packages", open.size()));
  const IndexReply reply = ask_index(asked);
  std::vector<Lacking> all;
  for (const LockedDistribution* one : open)
    if (std::string why = why_not_offered(reply, *one); !why.empty()) all.push_back({one, std::move(why)});
  return all;
}

}  // namespace

// Packages that were installed from a URL are on no index, or on another one.
Result<void> download_file(const LockedArtifact& artifact, const std::string& folder) {
  SCANKIT_CHECK(make_directories(folder));
  report::Progress progress(say("downloading {}", artifact.file));
  installer::DownloadRequest request;
  request.url = artifact.url;
  request.out = path_join(folder, artifact.file);
  request.sha256 = artifact.sha256;
  request.size = artifact.size;
  request.limit = kMostWheelBytes;
  request.certificates = installer::index_settings(*make_real_host()).certificates;
  request.progress = [&](std::uint64_t have, std::uint64_t size) { progress.bytes(have, size); };
  return installer::download(request);
}

namespace {

Error not_available(const std::vector<std::string>& lines, std::size_t of) {
  return {
      Errc::NotFound,
      message_n(lines.size(), "{} of {} packages cannot be installed: {}",
                "{} of {} packages cannot be installed: {}", lines.size(), of, first_lines(lines)),
      message(
          "check the index and the mirror that pip and uv are configured for, or install from a directory: "
          "--offline {}",
          kWheelFolder)};
}

// The second try after an installer failed: what the index lacks and what has a URL is downloaded first.
Result<void> retry(InstallRequest request, const installer::Installer& installer, const EnvironmentLock& lock,
                   const FoundWheels& found, const std::string& requirements, const Error& failed) {
  const std::vector<Lacking> missing = lacking(request, installer, lock, found);
  SCANKIT_CHECK(fix::Interruption::check());
  if (missing.empty()) return failed;
  const std::string folder = path_join(request.tools, "downloaded");
  std::vector<std::string> lines;
  for (const Lacking& one : missing) {
    std::string why = one.why;
    const auto brought = one.locked->artifact->url.empty() ? Result<void>(Error{})
                                                           : download_file(*one.locked->artifact, folder);
    SCANKIT_CHECK(fix::Interruption::check());
    if (brought) continue;
    if (!one.locked->artifact->url.empty()) why = clauses({why, tr(brought.error().message)});
    lines.push_back(one.locked->name + "==" + one.locked->version + ": " + why);
  }
  if (!lines.empty()) return not_available(lines, lock.distributions.size());
  request.find_links.push_back(folder);
  return fix::run_installer(locked_install(request, installer, requirements, wheels_only(lock)),
                            request.lock);
}

}  // namespace

// No pip and no setuptools: the lock has them if they are a part of the environment.
Result<void> make_venv(const InstallRequest& request) {
  if (request.installer.kind == installer::Installer::Kind::Uv)
    return run_quietly({request.installer.program, "venv", "--quiet", "--no-project", "--python",
                        request.base, request.environment});
  return run_quietly({request.base, "-m", "venv", "--without-pip", request.environment});
}

Result<void> install_locked(const InstallRequest& request, const EnvironmentLock& lock,
                            const FoundWheels& found) {
  SCANKIT_TRY(const installer::Installer installer, installer_for(request));
  const std::string requirements = path_join(request.tools, "requirements.txt");
  std::string lines;
  for (const LockedDistribution* one : installable(lock).with_hash) lines += requirement_line(*one);
  if (lines.empty()) return {};
  SCANKIT_CHECK(write_file_atomically(requirements, lines));
  const auto done =
      fix::run_installer(locked_install(request, installer, requirements, wheels_only(lock)), request.lock);
  if (done) return done;
  SCANKIT_CHECK(fix::Interruption::check());
  SCANKIT_CHECK(check_disk(request.environment, lock));
  if (request.offline) return done;
  return retry(request, installer, lock, found, requirements, done.error());
}

installer::InstallerCommand install_command(const InstallRequest& request,
                                            const installer::Installer& installer,
                                            const std::vector<std::string>& words) {
  std::vector<std::string> argv = install_words(request, installer);
  argv.insert(argv.end(), words.begin(), words.end());
  return command_of(std::move(argv), installer);
}

Result<void> install_resolved(const InstallRequest& request, const std::vector<std::string>& requirements) {
  SCANKIT_TRY(const installer::Installer installer, installer_for(request));
  std::vector<std::string> argv = install_words(request, installer);
  for (const std::string& name : request.only_wheels) argv.insert(argv.end(), {"--only-binary", name});
  for (const std::string& name : request.only_sources) argv.insert(argv.end(), {"--no-binary", name});
  argv.insert(argv.end(), requirements.begin(), requirements.end());
  const auto done = fix::run_installer(command_of(std::move(argv), installer), request.lock);
  if (done) return done;
  SCANKIT_CHECK(fix::Interruption::check());
  SCANKIT_CHECK(check_disk(request.environment, {}));
  return done;
}

}  // namespace scankit::envspec

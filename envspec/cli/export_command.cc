// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <iostream>

#include "doctor/base/exit_status.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/cli/commands.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/report/progress.h"
#include "envspec/check/check.h"
#include "envspec/cli/commands.h"
#include "envspec/export/export.h"
#include "envspec/lock/lock.h"

// `scankit env export`.
namespace scankit::envspec {
namespace {

// Packs one locally built distribution into the directory `aside`: again from the installed files, with the
// same bytes as when it was locked.
Result<void> pack(const Subject& subject, const LockedDistribution& locked, const std::string& folder,
                  const std::string& aside) {
  const Distribution* installed = find_distribution(subject.snapshot.distributions.value, locked.name);
  if (installed == nullptr || subject.host == nullptr)
    return Error{Errc::NotFound,
                 message("{}=={} was built here and is no longer installed", locked.name, locked.version),
                 message("put its wheel {} with sha256 {} into {}", locked.artifact->file,
                         locked.artifact->sha256, folder)};
  SCANKIT_TRY(const RepackedWheel wheel, repack(*subject.host, *installed));
  if (sha256_hex(wheel.bytes) != locked.artifact->sha256)
    return Error{Errc::Conflict, message("{} was changed since it was locked", locked.name),
                 message("lock again: scankit env lock")};
  return write_file_atomically(path_join(aside, locked.artifact->file), wheel.bytes);
}

// The wheels of `here` in `folder`/kWheelFolder: all of them, or none after an error. One that is there and has
// the right hash is kept. The environment is only looked at if one is missing.
Result<void> pack_all(const EnvExportOptions& options, const std::vector<const LockedDistribution*>& here,
                      const std::string& folder) {
  const std::string wheels = path_join(folder, kWheelFolder);
  std::vector<const LockedDistribution*> missing;
  for (const LockedDistribution* one : here) {
    const auto there = sha256_file(path_join(wheels, one->artifact->file));
    if (!there || *there != one->artifact->sha256) missing.push_back(one);
  }
  if (missing.empty()) return {};
  SCANKIT_TRY(const Subject subject, look_at(options.subject));
  SCANKIT_CHECK(make_directories(folder));
  SCANKIT_TRY(const TemporaryDirectory aside, TemporaryDirectory::create_in(folder, kWheelFolder));
  for (const LockedDistribution* one : missing) SCANKIT_CHECK(pack(subject, *one, wheels, aside.path()));
  SCANKIT_CHECK(make_directories(wheels));
  for (const LockedDistribution* one : missing) {
    const std::string& file = one->artifact->file;
    if (::rename(path_join(aside.path(), file).c_str(), path_join(wheels, file).c_str()) != 0)
      return Error{Errc::Io,
                   message("{} cannot be written: {}", path_join(wheels, file), std::strerror(errno)),
                   message("choose a file in another directory with --out")};
  }
  return {};
}

// Whether locking again could help. Compares with the sentences of index_query.cc and resolve.cc, which
// are English in every lock.
bool says_that_no_index_answered(const std::string& line) {
  return std::ranges::any_of(
      std::initializer_list<const char*>{"the index was not queried", "the index could not be reached",
                                         "the index did not answer"},
      [&](const char* why) { return line.find(why) != std::string::npos; });
}

// An export that lacks a package does not pin the environment, so that it needs --partial.
Result<void> check_whole(const Exported& exported, bool partial) {
  for (const std::string& line : exported.left_out)
    report::progress_note(partial ? say("left out: {}", line) : say("no hash of {}", line));
  if (exported.left_out.empty() || partial) return {};
  const bool not_asked = std::ranges::any_of(exported.left_out, says_that_no_index_answered);
  return Error{
      Errc::InvalidArgument,
      message_n(exported.left_out.size(),
                "{} package cannot be installed again from this lock, so nothing was written",
                "{} packages cannot be installed again from this lock, so nothing was written",
                exported.left_out.size()),
      not_asked
          ? message("run scankit env lock where the index can be reached, or leave them out with --partial")
          : message("--partial leaves them out")};
}

// Refuses a file that is there and was not written by an export. A device or a pipe is written into.
Result<void> may_overwrite(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0) return {};
  const auto there = read_whole_file(path);
  if (there && is_an_export(*there)) return {};
  return Error{Errc::InvalidArgument,
               message("{} exists and was not written by scankit env export, so nothing was written", path),
               message("move it away, or choose a file in another directory with --out")};
}

// Every file of the export with its path, the one that the user named last: it must not refer to what could
// not be written.
Result<std::vector<FileNextTo>> files_of(const EnvExportOptions& options, const Exported& exported) {
  std::vector<FileNextTo> files;
  const std::string folder = path_dirname(options.out);
  for (const FileNextTo& one : exported.next_to) {
    files.push_back({path_join(folder, one.file_name), one.text});
    if (one.file_name == path_basename(options.out))
      return Error{Errc::InvalidArgument,
                   message("{} is the name of a file that is written next to the export", options.out),
                   message("choose another one, such as --out {}", path_join(folder, exported.file_name))};
  }
  files.push_back({options.out, exported.text});
  for (const FileNextTo& one : files) SCANKIT_CHECK(may_overwrite(one.file_name));
  return files;
}

// All refusals come before the first file: of packages without a hash, of files that are there, and of wheels
// that cannot be packed again.
Result<void> write(const EnvExportOptions& options) {
  SCANKIT_TRY(const EnvironmentLock lock, read_lock(options.lock.empty() ? kLockFile : options.lock));
  SCANKIT_TRY(const Exported exported, export_lock(lock, options.format));
  SCANKIT_CHECK(check_whole(exported, options.partial));
  const auto here = built_here(lock);
  if (options.out.empty() || options.out == "-") {
    if (!here.empty())
      return Error{Errc::InvalidArgument,
                   message("{} was built here, and its wheel must be next to the export", here[0]->name),
                   message("choose a file with --out")};
    std::cout << exported.text;
    return {};
  }
  SCANKIT_TRY(const std::vector<FileNextTo> files, files_of(options, exported));
  const std::string folder = path_dirname(options.out);
  SCANKIT_CHECK(pack_all(options, here, folder));
  SCANKIT_CHECK(make_directories(folder));
  for (const FileNextTo& one : files) SCANKIT_CHECK(write_output(one.file_name, one.text));
  return {};
}

}  // namespace

int run_env_export(const EnvExportOptions& options) {
  const auto written = write(options);
  if (written) return kExitClean;
  cli::report_error(written.error());
  return written.error().code == Errc::Io ? kExitInternal : kExitUsage;
}

}  // namespace scankit::envspec

// SPDX-License-Identifier: Apache-2.0
// The directory in which an environment is made, and the one rename that makes it DIR. README.md: why it is
// made aside although a venv names its own path.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "envspec/create/create.h"

namespace scankit::envspec {
namespace {

constexpr const char* kStem = "scankit-create";  // doctor/base/private_files.cc removes what it begins

Error not_made(const std::string& path, int number) {
  const bool forbidden = number == EACCES || number == EPERM || number == EROFS;
  return {forbidden ? Errc::PermissionDenied : Errc::Io,
          message("cannot create {}: {}", path, std::strerror(number)), ""};
}

// Flushes the whole file system: an fsync for each of thousands of files would take minutes.
Result<void> flush_disk_of(const std::string& folder) {
  const Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0 || ::syncfs(fd.get()) != 0) return not_made(folder, errno);
  return {};
}

// What is there already stays. A command is only named where it would work: for an environment, and with its lock.
Error taken(const std::string& folder, const std::string& target, const std::string& lock_file) {
  const bool syncable = !lock_file.empty() && ::access((target + "/pyvenv.cfg").c_str(), F_OK) == 0;
  std::vector<std::string> command = {"env", "sync", folder};
  if (lock_file != kLockFile) command.insert(command.end(), {"--lock", lock_file});
  return {Errc::InvalidArgument,
          message("{} exists and is not an empty directory, and nothing was changed", folder),
          syncable ? message("choose another directory, or bring that environment to the lock: scankit {}",
                             shell_line(command))
                   : message("choose another directory")};
}

}  // namespace

Result<std::string> check_new_folder(const std::string& folder, const std::string& lock_file) {
  if (folder.empty())
    return Error{Errc::InvalidArgument, message("the name of the directory to make is empty"),
                 message("name one, such as .venv")};
  std::string target = path_normalize(path_join(current_directory(), folder));
  std::string parent = path_dirname(target);
  struct stat info {};
  if (::stat(parent.c_str(), &info) != 0)
    return Error{Errc::InvalidArgument, message("cannot create {}: {} does not exist", folder, parent),
                 message("mkdir -p {}", shell_quoted(parent))};
  if (target == "/") return taken(folder, target, "");
  if (!S_ISDIR(info.st_mode))
    return Error{Errc::InvalidArgument, message("cannot create {}: {} is not a directory", folder, parent),
                 ""};
  // Installers write the path without links, and all of it has to be found when it is rewritten.
  std::error_code code;
  parent = std::filesystem::canonical(parent, code);
  if (code) return not_made(target, code.value());
  target = path_join(parent, path_basename(target));
  if (::access(parent.c_str(), W_OK | X_OK) != 0) return not_made(target, errno);
  if (::lstat(target.c_str(), &info) != 0) return target;
  if (S_ISDIR(info.st_mode) && std::filesystem::is_empty(target, code) && !code) return target;
  if (!code) return taken(folder, target, lock_file);
  return Error{Errc::InvalidArgument, message("{} exists and cannot be read: {}", folder, code.message()),
               message("choose another directory")};
}

Result<Aside> Aside::begin(const std::string& folder, std::vector<std::string>& removed) {
  SCANKIT_TRY(std::string target, check_new_folder(folder));
  const std::string parent = path_dirname(target);
  removed = remove_dead_folders(parent);
  SCANKIT_TRY(TemporaryDirectory work, TemporaryDirectory::create_in(parent, kStem));
  return Aside(std::move(target), std::move(work));
}

// rename(2) replaces an empty directory and nothing else, so that what came into being meanwhile is safe.
Result<void> Aside::move() const {
  SCANKIT_CHECK(flush_disk_of(making_));
  if (::rename(making_.c_str(), target_.c_str()) != 0) {
    const int number = errno;
    if (number == ENOTEMPTY || number == EEXIST || number == ENOTDIR)
      return Error{Errc::Conflict, message("{} was created by somebody else in the meantime", target_), ""};
    return not_made(target_, number);
  }
  const auto kept = fsync_directory(path_dirname(target_));
  if (!kept) move_back();  // the caller says that nothing was made
  return kept;
}

void Aside::move_back() const { (void)::rename(target_.c_str(), making_.c_str()); }

}  // namespace scankit::envspec

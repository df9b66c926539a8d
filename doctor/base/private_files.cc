// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/private_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "doctor/base/files.h"
#include "doctor/base/say.h"

namespace scankit {
namespace {

constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

Error private_failure(const std::string& what, int number) {
  const Errc code = number == ENOENT || number == ENOTDIR ? Errc::NotFound
                    : number == EACCES || number == EPERM ? Errc::PermissionDenied
                                                          : Errc::Io;
  return {code, what + ": " + std::strerror(number), ""};
}

// The rule of private_files.h for one file or directory. `info` comes from lstat(2) or fstat(2) where
// links are to be refused, and from stat(2) where they are allowed. The hint is offered only to the
// owner, who can obey it.
Result<void> check_owner(const std::string& path, const struct ::stat& info) {
  const uid_t self = ::geteuid();
  if (info.st_uid != self && info.st_uid != 0)
    return Error{Errc::PermissionDenied, say("{} belongs to user {}", path, info.st_uid), ""};
  // The mode of a link means nothing.
  // O_NOFOLLOW refuses a link with ELOOP; O_NONBLOCK keeps a FIFO without a writer from blocking open(2).
  if (S_ISLNK(info.st_mode)) return Error{Errc::PermissionDenied, say("{} is a symbolic link", path), ""};
  if ((info.st_mode & kOthersWrite) != 0)
    return Error{Errc::PermissionDenied, say("users other than its owner can write to {}", path),
                 info.st_uid == self ? say("run: chmod go-w {}", path) : ""};
  return {};
}

}  // namespace

Result<void> check_private_folder(const std::string& path) {
  struct ::stat info {};
  if (::stat(path.c_str(), &info) != 0) return private_failure(say("cannot stat {}", path), errno);
  if (!S_ISDIR(info.st_mode)) return Error{Errc::Unsupported, say("{} is not a directory", path), ""};
  return check_owner(path, info);
}

Result<void> check_private_entry(const std::string& path) {
  struct ::stat info {};
  if (::lstat(path.c_str(), &info) != 0) return private_failure(say("cannot stat {}", path), errno);
  return check_owner(path, info);
}

Result<std::string> read_private_file(const std::string& path, std::size_t limit) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (fd.get() < 0 && errno == ELOOP)
    return Error{Errc::PermissionDenied, say("{} is a symbolic link", path), ""};
  if (fd.get() < 0) return private_failure(say("cannot open {}", path), errno);
  struct ::stat info {};
  if (::fstat(fd.get(), &info) != 0) return private_failure(say("cannot stat {}", path), errno);
  if (!S_ISREG(info.st_mode)) return Error{Errc::Unsupported, say("{} is not a regular file", path), ""};
  SCANKIT_CHECK(check_owner(path, info));
  std::string bytes;
  std::string buffer(1u << 18, '\0');
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return private_failure(say("cannot read {}", path), errno);
    if (got == 0) return bytes;
    bytes.append(buffer, 0, static_cast<std::size_t>(got));
    if (bytes.size() > limit)
      return Error{Errc::Unsupported, say("{} is longer than {} bytes", path, limit), ""};
  }
}

Result<void> make_private_folders(const std::string& path) {
  std::error_code ignored;
  if (path.empty() || std::filesystem::is_directory(path, ignored)) return {};
  if (const std::string parent = path_dirname(path); parent != path)
    SCANKIT_CHECK(make_private_folders(parent));
  // Another process may have been quicker: what it made is judged where it is read.
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return private_failure(say("cannot create the directory {}", path), errno);
  return {};
}

Result<void> make_tree_private(const std::string& folder) {
  namespace fs = std::filesystem;
  constexpr auto kWrite = fs::perms::group_write | fs::perms::others_write;
  std::error_code code;
  // Does nothing after the first error, which the end of the function reports.
  const auto close = [&](const fs::path& path) {
    if (!code) fs::permissions(path, kWrite, fs::perm_options::remove | fs::perm_options::nofollow, code);
  };
  close(folder);
  for (auto at = fs::recursive_directory_iterator(folder, code);
       !code && at != fs::recursive_directory_iterator(); at.increment(code))
    // The mode of a link cannot be changed, and its target may be outside the tree.
    if (!at->is_symlink(code)) close(at->path());
  if (code) return private_failure(say("cannot change the permissions below {}", folder), code.value());
  return {};
}

}  // namespace scankit

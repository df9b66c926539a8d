// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

#include "doctor/base/files.h"
#include "doctor/base/say.h"

namespace scankit {
namespace {

constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

Error private_failure(const Message& what, int number) {
  const Errc code = number == ENOENT || number == ENOTDIR ? Errc::NotFound
                    : number == EACCES || number == EPERM ? Errc::PermissionDenied
                                                          : Errc::Io;
  return {code, message("{}: {}", what, std::strerror(number)), ""};
}

// The rule for private files (files.h) for one file or directory. `info` comes from lstat(2) or fstat(2) where
// links are to be refused, and from stat(2) where they are allowed. The hint is offered only to the
// owner, who can obey it.
Result<void> check_owner(const std::string& path, const struct ::stat& info) {
  const uid_t self = ::geteuid();
  if (info.st_uid != self && info.st_uid != 0)
    return Error{Errc::PermissionDenied, message("{} belongs to user {}", path, info.st_uid), ""};
  // The mode of a link means nothing.
  // O_NOFOLLOW refuses a link with ELOOP; O_NONBLOCK keeps a FIFO without a writer from blocking open(2).
  if (S_ISLNK(info.st_mode)) return Error{Errc::PermissionDenied, message("{} is a symbolic link", path), ""};
  if ((info.st_mode & kOthersWrite) != 0)
    return Error{Errc::PermissionDenied, message("users other than its owner can write to {}", path),
                 info.st_uid == self ? message("run: chmod go-w {}", path) : ""};
  return {};
}

}  // namespace

Result<void> check_private_folder(const std::string& path) {
  struct ::stat info {};
  if (::stat(path.c_str(), &info) != 0) return private_failure(message("cannot stat {}", path), errno);
  if (!S_ISDIR(info.st_mode)) return Error{Errc::Unsupported, message("{} is not a directory", path), ""};
  return check_owner(path, info);
}

Result<void> check_private_entry(const std::string& path) {
  struct ::stat info {};
  if (::lstat(path.c_str(), &info) != 0) return private_failure(message("cannot stat {}", path), errno);
  return check_owner(path, info);
}

Result<std::string> read_private_file(const std::string& path, std::size_t limit) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (fd.get() < 0 && errno == ELOOP)
    return Error{Errc::PermissionDenied, message("{} is a symbolic link", path), ""};
  if (fd.get() < 0) return private_failure(message("cannot open {}", path), errno);
  struct ::stat info {};
  if (::fstat(fd.get(), &info) != 0) return private_failure(message("cannot stat {}", path), errno);
  if (!S_ISREG(info.st_mode)) return Error{Errc::Unsupported, message("{} is not a regular file", path), ""};
  SCANKIT_CHECK(check_owner(path, info));
  std::string bytes;
  std::string buffer(1u << 18, '\0');
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return private_failure(message("cannot read {}", path), errno);
    if (got == 0) return bytes;
    bytes.append(buffer, 0, static_cast<std::size_t>(got));
    if (bytes.size() > limit)
      return Error{Errc::Unsupported, message("{} is longer than {} bytes", path, limit), ""};
  }
}

Result<void> make_private_folders(const std::string& path) {
  std::error_code ignored;
  if (path.empty() || std::filesystem::is_directory(path, ignored)) return {};
  if (const std::string parent = path_dirname(path); parent != path)
    SCANKIT_CHECK(make_private_folders(parent));
  // Another process may have been quicker: what it made is judged where it is read.
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    return private_failure(message("cannot create the directory {}", path), errno);
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
  if (code) return private_failure(message("cannot change the permissions below {}", folder), code.value());
  return {};
}

// Each temporary directory has a file NAME.lock next to it, which its owner keeps locked with flock(2).
// The kernel drops the lock when the owner dies, however it dies, so a lock file that can be locked
// belongs to a dead scankit, and the directory may be removed. Everything here is careful to remove
// nothing else: the name, the owner, the lock file's text, the inode and the boot must all match.

namespace {

constexpr std::string_view kLock = ".lock";
constexpr std::string_view kWhat = "a work folder of scankit, in use while this file is locked\n";

// The text of the lock file for this directory: its inode number and the machine's boot id. The inode
// ties the file to one directory and not merely to a name. The boot id is there because some shared file
// systems keep locks within one machine, where a directory that another machine uses would look dead. ""
// if /proc is not mounted; then nothing is ever locked or removed.
std::string words_of(const struct stat& folder) {
  const auto boot = read_whole_file("/proc/sys/kernel/random/boot_id", 64);
  if (!boot || boot->empty()) return "";
  return std::string(kWhat) + "inode " + std::to_string(folder.st_ino) + "\nboot " + *boot;
}

// A name such as "scankit-build.a1B2c3.lock": the stem of create(), six random characters of mkdtemp(3).
bool is_named_as_ours(std::string_view name) {
  if (!name.starts_with("scankit") || !name.ends_with(kLock)) return false;
  name.remove_suffix(kLock.size());
  const auto dot = name.rfind('.');
  return dot != std::string_view::npos && name.size() - dot == 7 &&
         name.substr(dot + 1).find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == std::string_view::npos;
}

// A second link would mean that somebody else made the name point to a file of ours.
bool is_file_of_ours(const struct stat& info) {
  return S_ISREG(info.st_mode) && info.st_uid == ::geteuid() && info.st_nlink == 1;
}

// Removes the directory that belongs to this lock file if its owner is dead, and returns its path; "" where
// there was none. O_NOFOLLOW and O_NONBLOCK:
// /tmp is a place where anybody may plant a link or a FIFO with such a name.
std::string remove_if_dead(const std::string& lock) {
  const Descriptor file(::open(lock.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  struct stat info, again, folder;
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0 || !is_file_of_ours(info)) return "";
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return "";
  // The owner may have ended properly after open(2), and another process may have taken the name since.
  // The lock then belongs to a file that has no name any more.
  if (::lstat(lock.c_str(), &again) != 0 || again.st_ino != info.st_ino || again.st_dev != info.st_dev)
    return "";
  const std::string path = lock.substr(0, lock.size() - kLock.size());
  const auto words = read_whole_file(lock, 1024);
  if (!words || words->empty()) return "";
  // The lock file is written after the directory is made, and removed after it. A lock file without a
  // directory is therefore the rest of an owner that was killed in between.
  if (::lstat(path.c_str(), &folder) != 0) {
    if (errno == ENOENT && words->starts_with(kWhat)) ::unlink(lock.c_str());
    return "";
  }
  if (!S_ISDIR(folder.st_mode) || folder.st_uid != ::geteuid() || *words != words_of(folder)) return "";
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
  ::unlink(lock.c_str());
  return path;
}

// The locked lock file of a new directory. An empty descriptor means that it could not be had; the
// directory then works all the same, and nobody ever removes it as dead.
Descriptor lock_of(const std::string& path) {
  const std::string lock = path + std::string(kLock);
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) return Descriptor();
  Descriptor file(::open(lock.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file.get() < 0) return Descriptor();
  const std::string words = words_of(info);
  if (!words.empty() && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0 &&
      ::write(file.get(), words.data(), words.size()) == static_cast<ssize_t>(words.size()))
    return file;
  ::unlink(lock.c_str());
  return Descriptor();
}

}  // namespace

std::vector<std::string> remove_dead_folders(const std::string& base) {
  std::vector<std::string> removed;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(base.c_str()), ::closedir);
  if (folder == nullptr) return removed;
  while (const dirent* entry = ::readdir(folder.get())) {
    if (!is_named_as_ours(entry->d_name)) continue;
    if (std::string path = remove_if_dead(path_join(base, entry->d_name)); !path.empty())
      removed.push_back(std::move(path));
  }
  return removed;
}

// `stem` must start with "scankit", or remove_dead_folders() will not recognise what a
// killed process left.
Result<TemporaryDirectory> TemporaryDirectory::create(std::string_view stem) {
  const char* named = std::getenv("TMPDIR");
  // Absolute, since what gets the path may be run in another directory.
  const std::string base =
      named != nullptr && *named != '\0' ? path_join(current_directory(), named) : "/tmp";
  static std::once_flag once;
  std::call_once(once, remove_dead_folders, base);
  auto made = create_in(base, stem);
  if (made) return made;
  return Error{made.error().code, made.error().message, message("set TMPDIR to a writable directory")};
}

Result<TemporaryDirectory> TemporaryDirectory::create_in(const std::string& base, std::string_view stem) {
  std::string path = path_join(base, std::string(stem) + ".XXXXXX");
  if (::mkdtemp(path.data()) == nullptr)
    return Error{errno == EACCES || errno == EROFS ? Errc::PermissionDenied : Errc::Io,
                 message("cannot create a directory in {}: {}", base, std::strerror(errno)), ""};
  return TemporaryDirectory(path, lock_of(path));
}

// An empty path marks an object that was moved from, whose destructor has nothing to remove.
TemporaryDirectory::TemporaryDirectory(TemporaryDirectory&& other) noexcept
    : path_(std::exchange(other.path_, "")), lock_(std::move(other.lock_)) {}

TemporaryDirectory::~TemporaryDirectory() {
  if (path_.empty()) return;
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  if (lock_.get() >= 0) ::unlink((path_ + std::string(kLock)).c_str());
}

}  // namespace scankit

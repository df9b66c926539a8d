// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/result.h"

namespace scankit {

// A file read by pread, never mapped: a file cut short while we read it would kill us with SIGBUS.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  virtual std::uint64_t size() const = 0;
  // Fills exactly `length` bytes from `offset`, or fails with Errc::Malformed (past the end) or Errc::Io.
  virtual Result<void> read(std::uint64_t offset, void* into, std::size_t length) const = 0;
};

enum class FileKind { Regular, Directory, Symlink, Other };
// Times are nanoseconds since 1970. `mode` has the permission bits alone (07777). `device` and `inode`
// together tell whether two paths are one file.
struct FileInfo {
  FileKind kind = FileKind::Other;
  std::uint64_t size = 0;
  std::int64_t mtime_ns = 0;
  std::uint64_t device = 0, inode = 0;
  std::uint32_t mode = 0, uid = 0, nlink = 0;
  std::int64_t ctime_ns = 0;
};
struct DirEntry {
  std::string name;
  FileKind kind = FileKind::Other;  // of the entry itself: a link is Symlink
};

// The one seam between the probes and the machine. All paths
// are absolute paths as the examined system sees them.
class Host {
 public:
  virtual ~Host() = default;
  // Whole file, at most `limit` bytes (longer: Errc::Unsupported).
  virtual Result<std::string> read_file(const std::string& path, std::size_t limit = 16u << 20) const = 0;
  // Regular files only: anything else is Errc::Unsupported.
  virtual Result<std::unique_ptr<ByteSource>> open(const std::string& path) const = 0;
  // Entries sorted by name, without "." and "..".
  virtual Result<std::vector<DirEntry>> list(const std::string& path) const = 0;
  virtual Result<FileInfo> stat(const std::string& path) const = 0;   // follows links
  virtual Result<FileInfo> lstat(const std::string& path) const = 0;  // does not
  virtual Result<std::string> readlink(const std::string& path) const = 0;
  // All links resolved, inside the root; Errc::NotFound when a component is missing.
  virtual Result<std::string> realpath(const std::string& path) const = 0;
  // Nothing where the variable is not set, and always nothing for an unpacked root.
  virtual std::optional<std::string> env(std::string_view name) const = 0;
  // True where the examined system is the one that runs, so that child processes and /proc speak of it.
  virtual bool is_live() const = 0;

  bool exists(const std::string& path) const { return stat(path).has_value(); }
  bool is_directory(const std::string& path) const {
    auto info = stat(path);
    return info && info->kind == FileKind::Directory;
  }
  // A regular file that somebody may execute.
  bool is_program(const std::string& path) const {
    auto info = stat(path);
    return info && info->kind == FileKind::Regular && (info->mode & 0111) != 0;
  }
};

// How paths below a root are resolved: by the kernel (openat2) where it can, else by a walk of our own, which
// tests ask for.
enum class RootAccess { Kernel, Walk };

// The running machine, or with root != "" an unpacked system below that folder (links resolve inside it).
std::unique_ptr<Host> make_real_host(const std::string& root = "", RootAccess access = RootAccess::Kernel);

}  // namespace scankit

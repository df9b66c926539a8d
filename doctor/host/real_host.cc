// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/host/host.h"
#include "doctor/host/root_folder.h"

// Host over POSIX calls. With a root, every path goes through RootFolder, which cannot be led out of it; no
// call below may then use a path by itself.
namespace scankit {
namespace {

// ENOTDIR means that a component of the path is a file: what was asked for does not exist either.
Error failure(const Message& what, int number) {
  const Errc code = number == ENOENT || number == ENOTDIR ? Errc::NotFound
                    : number == EACCES || number == EPERM ? Errc::PermissionDenied
                                                          : Errc::Io;
  return {code, message("{}: {}", what, std::strerror(number)), ""};
}

// pread keeps no position, so one source may be read from several threads. The size is that of the time of
// opening; a file that becomes shorter is an error, never a short read.
class FileSource : public ByteSource {
 public:
  FileSource(Descriptor fd, std::uint64_t size, std::string path)
      : fd_(std::move(fd)), size_(size), path_(std::move(path)) {}
  std::uint64_t size() const override { return size_; }
  Result<void> read(std::uint64_t offset, void* into, std::size_t length) const override {
    auto* at = static_cast<char*>(into);
    if (offset > size_ || length > size_ - offset)
      return Error{Errc::Malformed, message("{}: unexpected end of file", path_), ""};
    while (length > 0) {
      const ssize_t got = ::pread(fd_.get(), at, length, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return failure(message("cannot read {}", path_), errno);
      if (got == 0) return Error{Errc::Malformed, message("{} shrank while it was read", path_), ""};
      at += got;
      offset += static_cast<std::uint64_t>(got);
      length -= static_cast<std::size_t>(got);
    }
    return {};
  }

 private:
  Descriptor fd_;
  std::uint64_t size_;
  std::string path_;
};

FileKind kind_of(mode_t mode) {
  if (S_ISREG(mode)) return FileKind::Regular;
  if (S_ISDIR(mode)) return FileKind::Directory;
  return S_ISLNK(mode) ? FileKind::Symlink : FileKind::Other;
}

FileInfo info_of(const struct ::stat& st) {
  FileInfo info;
  info.kind = kind_of(st.st_mode);
  info.size = static_cast<std::uint64_t>(st.st_size);
  info.mtime_ns = static_cast<std::int64_t>(st.st_mtim.tv_sec) * 1'000'000'000 + st.st_mtim.tv_nsec;
  info.ctime_ns = static_cast<std::int64_t>(st.st_ctim.tv_sec) * 1'000'000'000 + st.st_ctim.tv_nsec;
  info.device = st.st_dev;
  info.inode = st.st_ino;
  info.mode = st.st_mode & 07777;
  info.uid = st.st_uid;
  info.nlink = static_cast<std::uint32_t>(st.st_nlink);
  return info;
}

class RealHost : public Host {
 public:
  RealHost(const std::string& root, RootAccess access) {
    if (!root.empty()) root_.emplace(root, access);
  }

  Result<std::string> read_file(const std::string& path, std::size_t limit) const override {
    // Not through ByteSource: files of /proc and /sys say that their size is 0 or 4096.
    SCANKIT_TRY(const Regular file, open_regular(path));
    std::string bytes;
    char buffer[1u << 14];
    for (;;) {
      const ssize_t got = ::read(file.fd.get(), buffer, sizeof(buffer));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return failure(message("cannot read {}", path), errno);
      if (got == 0) return bytes;
      bytes.append(buffer, static_cast<std::size_t>(got));
      if (bytes.size() > limit)
        return Error{Errc::Unsupported, path + " is longer than " + std::to_string(limit) + " bytes", ""};
    }
  }

  Result<std::unique_ptr<ByteSource>> open(const std::string& path) const override {
    SCANKIT_TRY(Regular file, open_regular(path));
    return std::unique_ptr<ByteSource>(std::make_unique<FileSource>(
        std::move(file.fd), static_cast<std::uint64_t>(file.info.st_size), path));
  }

  Result<std::vector<DirEntry>> list(const std::string& path) const override {
    SCANKIT_TRY(Descriptor fd, opened(path, O_RDONLY | O_DIRECTORY));
    DIR* directory = ::fdopendir(fd.get());
    if (directory == nullptr) return failure(message("cannot list {}", path), errno);
    // fdopendir takes the descriptor over only where it succeeds; closedir closes it.
    fd.release();
    std::vector<DirEntry> entries;
    // readdir(3) tells an error from the end by errno alone: half a directory is not a directory.
    for (errno = 0; const dirent* entry = ::readdir(directory); errno = 0) {
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      struct ::stat st {};
      FileKind kind = entry->d_type == DT_REG   ? FileKind::Regular
                      : entry->d_type == DT_DIR ? FileKind::Directory
                      : entry->d_type == DT_LNK ? FileKind::Symlink
                                                : FileKind::Other;
      // Some file systems do not fill d_type (readdir(3)).
      if (entry->d_type == DT_UNKNOWN &&
          ::fstatat(::dirfd(directory), name.c_str(), &st, AT_SYMLINK_NOFOLLOW) == 0)
        kind = kind_of(st.st_mode);
      entries.push_back({name, kind});
    }
    const int error = errno;
    ::closedir(directory);
    if (error != 0) return failure(message("cannot list {}", path), error);
    std::ranges::sort(entries, {}, &DirEntry::name);
    return entries;
  }

  Result<FileInfo> stat(const std::string& path) const override {
    struct ::stat st {};
    if (root_) return stat_below(path, 0);
    if (::stat(path.c_str(), &st) != 0) return failure(message("cannot stat {}", path), errno);
    return info_of(st);
  }

  Result<FileInfo> lstat(const std::string& path) const override {
    struct ::stat st {};
    if (root_) return stat_below(path, O_NOFOLLOW);
    if (::lstat(path.c_str(), &st) != 0) return failure(message("cannot stat {}", path), errno);
    return info_of(st);
  }

  Result<std::string> readlink(const std::string& path) const override {
    std::string target(4096, '\0');
    ssize_t length = -1;
    if (root_) {
      SCANKIT_TRY(const Descriptor fd, root_->open(path, O_PATH | O_NOFOLLOW));
      // An empty path with a descriptor of O_PATH and O_NOFOLLOW reads the link itself (readlink(2)).
      length = ::readlinkat(fd.get(), "", target.data(), target.size());
    } else {
      length = ::readlink(path.c_str(), target.data(), target.size());
    }
    if (length < 0) return failure(message("cannot read the link {}", path), errno);
    target.resize(static_cast<std::size_t>(length));
    return target;
  }

  Result<std::string> realpath(const std::string& path) const override {
    if (root_) return root_->resolve(path);
    char* resolved = ::realpath(path.c_str(), nullptr);
    if (resolved == nullptr) return failure(message("cannot resolve {}", path), errno);
    std::string real = resolved;
    std::free(resolved);
    return real;
  }

  std::optional<std::string> env(std::string_view name) const override {
    if (root_) return std::nullopt;  // our variables say nothing about another system
    const char* value = std::getenv(std::string(name).c_str());
    if (value == nullptr) return std::nullopt;
    return std::string(value);
  }

  bool is_live() const override { return !root_; }

 private:
  struct Regular {
    Descriptor fd;
    struct ::stat info {};
  };

  Result<Descriptor> opened(const std::string& path, int flags) const {
    if (root_) return root_->open(path, flags);
    Descriptor fd(::open(path.c_str(), flags | O_CLOEXEC));
    if (fd.get() < 0)
      return failure(
          (flags & O_DIRECTORY) != 0 ? message("cannot list {}", path) : message("cannot open {}", path),
          errno);
    return fd;
  }

  Result<Regular> open_regular(const std::string& path) const {
    Regular file;
    // O_NONBLOCK: opening a FIFO would otherwise wait for a writer. It changes nothing for regular files.
    SCANKIT_TRY(file.fd, opened(path, O_RDONLY | O_NONBLOCK));
    if (::fstat(file.fd.get(), &file.info) != 0) return failure(message("cannot stat {}", path), errno);
    if (!S_ISREG(file.info.st_mode)) return Error{Errc::Unsupported, path + " is not a regular file", ""};
    return file;
  }

  // O_PATH needs no permission to read the file; fstat takes such a descriptor from Linux 3.6 on (open(2)).
  Result<FileInfo> stat_below(const std::string& path, int flags) const {
    SCANKIT_TRY(const Descriptor fd, root_->open(path, O_PATH | flags));
    struct ::stat st {};
    if (::fstat(fd.get(), &st) != 0) return failure(message("cannot stat {}", path), errno);
    return info_of(st);
  }

  std::optional<RootFolder> root_;
};

}  // namespace

std::unique_ptr<Host> make_real_host(const std::string& root, RootAccess access) {
  std::string at = root;
  while (at.ends_with('/')) at.pop_back();
  return std::make_unique<RealHost>(at, access);
}

}  // namespace scankit

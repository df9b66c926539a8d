// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/files.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <optional>
#include <system_error>

#include "doctor/base/say.h"
#include "doctor/base/sha256.h"

namespace scankit {
namespace {

// An Error with the text of strerror(3) and the Errc that callers decide by.
Error from_errno(const Message& what, int number) {
  const Errc code = number == ENOENT || number == ENOTDIR ? Errc::NotFound
                    : number == EACCES || number == EPERM ? Errc::PermissionDenied
                                                          : Errc::Io;
  return {code, message("{}: {}", what, std::strerror(number)), ""};
}

// Names the file as the user knows it, never the temporary file next to it, and says which
// directory is missing.
Error cannot_write(const std::string& path, int number) {
  const std::string folder = path_dirname(path);
  Error error = from_errno(message("cannot write {}", path), number);
  struct stat status {};
  if (number == ENOENT && ::stat(folder.c_str(), &status) != 0)
    error.message = message("cannot write {}: the directory {} does not exist", path, folder);
  else if (number == ENOTDIR)
    error.message = message("cannot write {}: {} is not a directory", path, folder);
  return error;
}

Result<void> write_all(int fd, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return cannot_write(path, errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

std::string kind_of(mode_t mode) {
  if (S_ISDIR(mode)) return say("a directory");
  if (S_ISFIFO(mode)) return say("a FIFO");
  if (S_ISSOCK(mode)) return say("a socket");
  return say("a device");
}

// A FIFO without a writer, a terminal or a socket would block a reader for ever. Device 1:3 is
// /dev/null, which reads as an empty file. The pipe of a shell is on pipefs, unlike a FIFO that has a
// name on a disk.
Result<void> can_be_read_whole(int fd, const std::string& path, Accept accept) {
  struct stat info {};
  if (::fstat(fd, &info) != 0) return from_errno(message("cannot read {}", path), errno);
  if (S_ISREG(info.st_mode)) return {};
  if (S_ISCHR(info.st_mode) && info.st_rdev == makedev(1, 3)) return {};
  struct statfs system {};
  const bool of_a_shell =
      S_ISFIFO(info.st_mode) && ::fstatfs(fd, &system) == 0 && system.f_type == PIPEFS_MAGIC;
  if (accept == Accept::FilesAndPipes && of_a_shell) return {};
  return Error{Errc::Unsupported,
               message("cannot read {}: it is {} and not a file", path, kind_of(info.st_mode)), ""};
}

// Calls sink(data, length) for each piece of the file and stops at its first Error. Pieces of 256 KiB
// keep the memory small for files of any size.
template <class Sink>
Result<void> read_pieces(const std::string& path, Accept accept, Sink sink) {
  // O_NONBLOCK, because open(2) of a FIFO would wait for a writer. F_SETFL removes it again for the reads
  // from a pipe that was accepted.
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (fd.get() < 0) return from_errno(message("cannot open {}", path), errno);
  SCANKIT_CHECK(can_be_read_whole(fd.get(), path, accept));
  (void)::fcntl(fd.get(), F_SETFL, 0);
  std::string buffer(1u << 18, '\0');
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return from_errno(message("cannot read {}", path), errno);
    if (got == 0) return {};
    SCANKIT_CHECK(sink(buffer.data(), static_cast<std::size_t>(got)));
  }
}

}  // namespace

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = other.release();
  }
  return *this;
}
Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}
int Descriptor::release() { return std::exchange(fd_, -1); }

Result<std::string> read_whole_file(const std::string& path, std::size_t limit, Accept accept) {
  std::string bytes;
  // The size is checked piece by piece and not with fstat(2): a pipe has no size, and a file may grow.
  SCANKIT_CHECK(read_pieces(path, accept, [&](const char* data, std::size_t length) -> Result<void> {
    if (bytes.size() + length > limit)
      return Error{Errc::Unsupported, message("{} is longer than {} bytes", path, limit), ""};
    bytes.append(data, length);
    return {};
  }));
  return bytes;
}

namespace {

// The core of both writers. The temporary file is in the same directory, because rename(2) cannot cross
// file systems, and is flushed before the rename, or a crash could leave an empty file under the name.
// `refused` is set to the errno of a directory that takes no new file, or of a name that cannot be given
// to another file; write_output() has another way for those.
Result<void> replace_file(const std::string& path, std::string_view bytes, unsigned mode, int& refused) {
  std::string aside = path + ".XXXXXX";
  Descriptor fd(::mkostemp(aside.data(), O_CLOEXEC));
  if (fd.get() < 0) return cannot_write(path, refused = errno);
  auto finish = [&]() -> Result<void> {
    SCANKIT_CHECK(write_all(fd.get(), bytes, path));
    if (::fchmod(fd.get(), mode) != 0 || ::fsync(fd.get()) != 0) return cannot_write(path, errno);
    if (::rename(aside.c_str(), path.c_str()) != 0) return cannot_write(path, refused = errno);
    return {};
  };
  auto done = finish();
  if (!done) {
    ::unlink(aside.c_str());
    return done;
  }
  return fsync_directory(path_dirname(path));
}

}  // namespace

Result<void> write_file_atomically(const std::string& path, std::string_view bytes, unsigned mode) {
  int refused = 0;
  return replace_file(path, bytes, mode, refused);
}

namespace {

// N where the path is a name of this process's descriptor N: /dev/stdout, /dev/fd/3, /proc/self/fd/3.
std::optional<int> descriptor_named(std::string_view path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string& folder : {std::string("/dev/fd/"), std::string("/proc/self/fd/"),
                                    "/proc/" + std::to_string(::getpid()) + "/fd/"}) {
    if (!path.starts_with(folder)) continue;
    const std::string_view digits = path.substr(folder.size());
    int number = -1;
    const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (end.ec == std::errc() && end.ptr == digits.data() + digits.size()) return number;
  }
  return std::nullopt;
}

// Whether a link in a directory such as /tmp, which everybody may write to, was made by somebody else:
// following it would let that user choose which of our files is overwritten. The rule is the kernel's for
// fs.protected_symlinks (proc(5)), which not every kernel has switched on.
bool is_planted(const std::string& link, const struct stat& info) {
  struct stat folder {};
  if (::stat(path_dirname(link).c_str(), &folder) != 0) return false;
  const bool everybodys = (folder.st_mode & S_ISVTX) != 0 && (folder.st_mode & S_IWOTH) != 0;
  return everybodys && info.st_uid != ::geteuid() && info.st_uid != folder.st_uid;
}

// Follows the links at the end of `path` to the file that they name, whether it exists or not. Stops at a
// name of one of our descriptors, which must not be replaced by a file. Not realpath(3): the last name
// may not exist yet.
Result<std::string> end_of_links(const std::string& path) {
  constexpr int kMost = 40;  // as the kernel's
  std::string at = path;
  for (int step = 0; step < kMost; ++step) {
    struct stat info {};
    if (descriptor_named(at) || ::lstat(at.c_str(), &info) != 0 || !S_ISLNK(info.st_mode)) return at;
    if (is_planted(at, info))
      return Error{
          Errc::PermissionDenied,
          message("cannot write {}: {} is a link of user {} in a directory where everybody may write", path,
                  at, info.st_uid),
          message("choose a file in a directory of your own")};
    std::array<char, 4096> target{};
    const ssize_t length = ::readlink(at.c_str(), target.data(), target.size());
    if (length < 0) return cannot_write(path, errno);
    at = path_join(path_dirname(at), std::string_view(target.data(), static_cast<std::size_t>(length)));
  }
  return cannot_write(path, ELOOP);
}

// Writes into what is there, a device or a FIFO, and replaces nothing.
Result<void> write_into(const std::string& path, const std::string& file, std::string_view bytes) {
  // O_NONBLOCK: open(2) of a FIFO without a reader would wait for one, and so reports ENXIO. A reader
  // that is merely slow may block the write(2) afterwards.
  const Descriptor fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
  if (fd.get() < 0 && errno == ENXIO)
    return Error{Errc::Io, message("cannot write {}: no process is reading from it", path),
                 message("start its reader first")};
  if (fd.get() < 0) return cannot_write(path, errno);
  (void)::fcntl(fd.get(), F_SETFL, 0);
  return write_all(fd.get(), bytes, path);
}

// Writes a file in place, for a name that no other file can be given. Space for the new bytes is reserved
// before the old ones are touched, so that a full disk is noticed while the old file is still whole. File
// systems without fallocate(2) skip that.
Result<void> overwrite_file(const std::string& path, const std::string& file, std::string_view bytes) {
  const Descriptor fd(::open(file.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY));
  if (fd.get() < 0) return cannot_write(path, errno);
  const auto size = static_cast<off_t>(bytes.size());
  if (size > 0 && ::fallocate(fd.get(), FALLOC_FL_KEEP_SIZE, 0, size) != 0 && errno == ENOSPC)
    return cannot_write(path, ENOSPC);
  SCANKIT_CHECK(write_all(fd.get(), bytes, path));
  if (::ftruncate(fd.get(), size) != 0 || ::fsync(fd.get()) != 0) return cannot_write(path, errno);
  return {};
}

// Writes into an open descriptor. Text that stdio still buffers belongs before these bytes.
Result<void> write_to_descriptor(int number, const std::string& path, std::string_view bytes) {
  std::fflush(nullptr);  // what was printed before comes before
  return write_all(number, bytes, path);
}

// What the umask leaves of rw-r--r--. umask(2) can only be read by setting it, so this must not run while
// another thread creates files.
unsigned mode_of_new_file() {
  const mode_t mask = ::umask(022);
  ::umask(mask);
  return 0644U & ~mask;
}

}  // namespace

Result<std::string> regular_output(const std::string& path) {
  SCANKIT_TRY(std::string file, end_of_links(path));
  struct stat info {};
  if (::stat(file.c_str(), &info) == 0 && (descriptor_named(file) || !S_ISREG(info.st_mode)))
    return Error{Errc::InvalidArgument,
                 message("cannot write {}: it is {} and not a file", path, kind_of(info.st_mode)),
                 message("give a file, existing or new")};
  return file;
}

Result<void> write_output(const std::string& path, std::string_view bytes, unsigned mode) {
  SCANKIT_TRY(const std::string file, end_of_links(path));
  if (const auto number = descriptor_named(file)) return write_to_descriptor(*number, path, bytes);
  struct stat info {};
  const bool there = ::stat(file.c_str(), &info) == 0;
  if (there && S_ISDIR(info.st_mode)) return cannot_write(path, EISDIR);
  if (there && !S_ISREG(info.st_mode)) return write_into(path, file, bytes);
  // An existing file keeps its permissions, because write_output() replaces it by a new one.
  const unsigned wanted = there ? info.st_mode & 0777U : (mode_of_new_file() | (mode & 0100U));
  int refused = 0;
  const auto written = replace_file(file, bytes, wanted, refused);
  // A file of ours in somebody else's directory, and a file that is mounted by itself, as container
  // engines do, cannot be replaced but can be overwritten. Any other error is final: on a full disk, for
  // example, the old bytes are the only ones there are.
  const bool own_name = refused == EACCES || refused == EPERM || refused == EROFS || refused == EBUSY;
  if (!there || !own_name || ::access(file.c_str(), W_OK) != 0) return written;
  return overwrite_file(path, file, bytes);
}

Result<void> make_directories(const std::string& path) {
  // std::filesystem::create_directories() would create directories that others may write to if the
  // umask lets it.
  std::string at;
  const std::string all = path_normalize(path);
  for (std::size_t end = 0; end != std::string::npos;) {
    end = all.find('/', end + 1);
    at = all.substr(0, end);
    if (::mkdir(at.c_str(), 0755) == 0 || errno == EEXIST) continue;
    struct stat info {};
    // mkdir(2) may fail with EROFS or EACCES instead of EEXIST although the directory exists.
    const int number = errno;
    if (::stat(at.c_str(), &info) == 0 && S_ISDIR(info.st_mode)) continue;
    return from_errno(message("cannot create the directory {}", path), number);
  }
  struct stat info {};
  if (::stat(all.c_str(), &info) == 0 && !S_ISDIR(info.st_mode))
    return from_errno(message("cannot create the directory {}", path), ENOTDIR);
  return {};
}

Result<void> fsync_directory(const std::string& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) return from_errno(message("cannot open the directory {}", path), errno);
  // Some network file systems refuse to sync a folder; the rename itself is then all that can be had.
  if (::fsync(fd.get()) != 0 && errno != EINVAL)
    return from_errno(message("cannot flush the directory {}", path), errno);
  return {};
}

std::string sha256_hex(std::string_view bytes) {
  Sha256Stream hash;
  hash.update(bytes.data(), bytes.size());
  return hash.hex();
}

Result<std::string> sha256_file(const std::string& path) {
  Sha256Stream hash;
  SCANKIT_CHECK(read_pieces(path, Accept::Files, [&](const char* data, std::size_t length) -> Result<void> {
    hash.update(data, length);
    return {};
  }));
  return hash.hex();
}

std::string path_join(std::string_view directory, std::string_view name) {
  if (directory.empty() || name.starts_with('/')) return std::string(name);
  std::string joined(directory);
  if (!joined.ends_with('/')) joined += '/';
  return joined.append(name);
}

std::string path_dirname(std::string_view path) {
  const auto slash = path.find_last_of('/');
  if (slash == std::string_view::npos) return ".";
  return slash == 0 ? "/" : std::string(path.substr(0, slash));
}

std::string path_basename(std::string_view path) {
  const auto slash = path.find_last_of('/');
  return std::string(slash == std::string_view::npos ? path : path.substr(slash + 1));
}

std::string path_normalize(std::string_view path) {
  std::string normal = std::filesystem::path(path).lexically_normal().string();
  if (normal.size() > 1 && normal.ends_with('/')) normal.pop_back();
  return normal;
}

std::string current_directory() {
  std::error_code code;
  auto path = std::filesystem::current_path(code);
  return code ? std::string() : path.string();
}

}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "doctor/base/say.h"
#include "doctor/base/sha256_stream.h"

namespace scankit {
namespace {

Error from_errno(const std::string& what, int number) {
  const Errc code = number == ENOENT || number == ENOTDIR ? Errc::NotFound
                    : number == EACCES || number == EPERM ? Errc::PermissionDenied
                                                          : Errc::Io;
  return {code, what + ": " + std::strerror(number), ""};
}

// Names the file as the user knows it, never the temporary one beside it.
Error cannot_write(const std::string& path, int number) {
  const std::string folder = path_dirname(path);
  Error error = from_errno(say("cannot write {}", path), number);
  struct stat status {};
  if (number == ENOENT && ::stat(folder.c_str(), &status) != 0)
    error.message = say("cannot write {}: the directory {} does not exist", path, folder);
  else if (number == ENOTDIR)
    error.message = say("cannot write {}: {} is not a directory", path, folder);
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

// Calls sink(data, length) for each piece of the file.
template <class Sink>
Result<void> read_pieces(const std::string& path, Sink sink) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return from_errno(say("cannot open {}", path), errno);
  std::string buffer(1u << 18, '\0');
  for (;;) {
    const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return from_errno(say("cannot read {}", path), errno);
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

Result<std::string> read_whole_file(const std::string& path, std::size_t limit) {
  std::string bytes;
  SCANKIT_CHECK(read_pieces(path, [&](const char* data, std::size_t length) -> Result<void> {
    if (bytes.size() + length > limit)
      return Error{Errc::Unsupported, say("{} is longer than {} bytes", path, limit), ""};
    bytes.append(data, length);
    return {};
  }));
  return bytes;
}

Result<void> write_file_atomically(const std::string& path, std::string_view bytes, unsigned mode) {
  std::string aside = path + ".XXXXXX";
  Descriptor fd(::mkostemp(aside.data(), O_CLOEXEC));
  if (fd.get() < 0) return cannot_write(path, errno);
  auto finish = [&]() -> Result<void> {
    SCANKIT_CHECK(write_all(fd.get(), bytes, path));
    if (::fchmod(fd.get(), mode) != 0 || ::fsync(fd.get()) != 0) return cannot_write(path, errno);
    if (::rename(aside.c_str(), path.c_str()) != 0) return cannot_write(path, errno);
    return {};
  };
  auto done = finish();
  if (!done) {
    ::unlink(aside.c_str());
    return done;
  }
  return fsync_directory(path_dirname(path));
}

Result<void> make_directories(const std::string& path) {
  std::error_code code;
  std::filesystem::create_directories(path, code);
  if (code) return from_errno(say("cannot create the folder {}", path), code.value());
  return {};
}

Result<void> fsync_directory(const std::string& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0) return from_errno(say("cannot open the folder {}", path), errno);
  // Some network file systems refuse to sync a folder; the rename itself is then all that can be had.
  if (::fsync(fd.get()) != 0 && errno != EINVAL)
    return from_errno(say("cannot flush the folder {}", path), errno);
  return {};
}

std::string sha256_hex(std::string_view bytes) {
  Sha256Stream hash;
  hash.update(bytes.data(), bytes.size());
  return hash.hex();
}

Result<std::string> sha256_file(const std::string& path) {
  Sha256Stream hash;
  SCANKIT_CHECK(read_pieces(path, [&](const char* data, std::size_t length) -> Result<void> {
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

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "doctor/base/result.h"

// Files of our own (what scankit writes, or was told to read).
// Facts about the examined machine go through Host.
namespace scankit {

// Owns a descriptor.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor();
  int get() const { return fd_; }
  int release();

 private:
  int fd_;
};

// What may be read beside regular files and /dev/null: the pipe of a shell's `<(command)`, where the user has
// named the file. A FIFO, a socket or a terminal could keep us for ever and is refused.
enum class Accept { Files, FilesAndPipes };
// Whole file; Errc::Unsupported where it is longer than `limit` bytes, or no file.
Result<std::string> read_whole_file(const std::string& path, std::size_t limit = 64u << 20,
                                    Accept accept = Accept::Files);
// Files of our own: writes beside `path`, fsyncs file and folder, renames: readers see the old bytes or the
// new ones, never a part. Whatever is at `path`, a link too, is replaced.
Result<void> write_file_atomically(const std::string& path, std::string_view bytes, unsigned mode = 0644);
// What the user asked for by name. A regular file is replaced as above and keeps its mode; a link is
// followed; a device, a FIFO and /dev/stdout are written into. A new file gets what the umask allows, and the
// x of `mode`.
Result<void> write_output(const std::string& path, std::string_view bytes, unsigned mode = 0644);
// For what cannot be written into a stream: the file that `path` names, at the end of its links, there or
// not. Errc::InvalidArgument where that is a device, a FIFO, a folder or standard output.
Result<std::string> regular_output(const std::string& path);
// As mkdir -p; nobody but the owner may write in what it makes, whatever the umask.
Result<void> make_directories(const std::string& path);
Result<void> fsync_directory(const std::string& path);
// Lower-case hex of the SHA-256 of bytes, or of a file read in pieces.
std::string sha256_hex(std::string_view bytes);
Result<std::string> sha256_file(const std::string& path);

std::string path_join(std::string_view directory, std::string_view name);
std::string path_dirname(std::string_view path);  // "/" for "/a", "." for "a"
std::string path_basename(std::string_view path);
// Lexical: "a//b/./c/../d" -> "a/b/d". Does not look at the disk.
std::string path_normalize(std::string_view path);
std::string current_directory();
// A folder of ours, removed with all it holds when the object dies. The first of a process removes those that
// killed scankits of this user left in the same place.
class TemporaryDirectory {
 public:
  static Result<TemporaryDirectory> create(std::string_view stem);
  TemporaryDirectory(TemporaryDirectory&&) noexcept;
  TemporaryDirectory& operator=(TemporaryDirectory&&) = delete;
  ~TemporaryDirectory();
  const std::string& path() const { return path_; }

 private:
  TemporaryDirectory(std::string path, Descriptor lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  std::string path_;
  Descriptor lock_;  // PATH.lock, held while it is in use
};
// Of the folders in `base` those alone whose lock file says that they are ours, and that nobody holds.
void remove_dead_folders(const std::string& base);

}  // namespace scankit

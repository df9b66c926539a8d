// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/result.h"

// scankit's own files: those that it writes, or that the user told it to read. Facts about the examined
// machine are read through Host instead. Everything uses POSIX calls on descriptors; nothing maps a file,
// because a file that is truncated while it is mapped kills the reader with SIGBUS.
namespace scankit {

// Owns a file descriptor and closes it. -1 means that there is none.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor();
  int get() const { return fd_; }
  // Gives up ownership: the caller closes the descriptor.
  int release();

 private:
  int fd_;
};

// What may be read in addition to regular files and /dev/null: the pipe of a shell's `<(command)`,
// where the user has named the file. A named FIFO, a socket or a terminal could block for ever and is
// always refused.
enum class Accept { Files, FilesAndPipes };
// The whole file. Errc::Unsupported if it is longer than `limit` bytes or is not of an accepted kind. The
// limit keeps a file of a stranger from filling the memory.
Result<std::string> read_whole_file(const std::string& path, std::size_t limit = 64u << 20,
                                    Accept accept = Accept::Files);
// For scankit's own files. Writes a temporary file next to `path`, flushes it and its directory to disk,
// and renames it: readers see the old bytes or the new ones, never a part. Whatever is at `path`, a link
// too, is replaced.
Result<void> write_file_atomically(const std::string& path, std::string_view bytes, unsigned mode = 0644);
// For a file that the user named. A regular file is replaced as above and keeps its mode; a link is
// followed; a device, a FIFO and /dev/stdout are written into. A new file gets what the umask allows of
// rw-r--r--, and the owner's x of `mode`.
Result<void> write_output(const std::string& path, std::string_view bytes, unsigned mode = 0644);
// For output that cannot be written into a stream, such as an archive: the file that `path` names after
// its links are followed, whether it exists or not. Errc::InvalidArgument for a device, a FIFO, a
// directory or standard output.
Result<std::string> regular_output(const std::string& path);
// As mkdir -p. Others than the owner cannot write to the directories that it creates, whatever the umask.
Result<void> make_directories(const std::string& path);
// Makes a rename or a new name in this directory survive a power failure.
Result<void> fsync_directory(const std::string& path);
// Lower-case hex of the SHA-256 of bytes, or of a file read in pieces.
std::string sha256_hex(std::string_view bytes);
Result<std::string> sha256_file(const std::string& path);

// An absolute `name` is returned unchanged, and so is any name with an empty `directory`.
std::string path_join(std::string_view directory, std::string_view name);
std::string path_dirname(std::string_view path);  // "/" for "/a", "." for "a"
std::string path_basename(std::string_view path);
// Lexical: "a//b/./c/../d" -> "a/b/d". Does not look at the disk.
std::string path_normalize(std::string_view path);
// "" if the current directory has been removed.
std::string current_directory();
// A directory that is removed with its contents when the object is destroyed; the name is STEM.XXXXXX
// in $TMPDIR or /tmp. The first one of a process also removes those that killed scankits of this user
// have left there.
class TemporaryDirectory {
 public:
  static Result<TemporaryDirectory> create(std::string_view stem);
  // The same in `base`, for what is to be renamed to a name in there: a rename does not leave its file system.
  static Result<TemporaryDirectory> create_in(const std::string& base, std::string_view stem);
  TemporaryDirectory(TemporaryDirectory&&) noexcept;
  TemporaryDirectory& operator=(TemporaryDirectory&&) = delete;
  ~TemporaryDirectory();
  const std::string& path() const { return path_; }
  // The lock's descriptor, -1 without one. A child that inherits it keeps the directory from being removed.
  int lock() const { return lock_.get(); }

 private:
  TemporaryDirectory(std::string path, Descriptor lock) : path_(std::move(path)), lock_(std::move(lock)) {}
  std::string path_;
  // PATH.lock, locked while the directory is in use. Empty if it could not be created.
  Descriptor lock_;  // PATH.lock, held while it is in use
};
// Removes the directories in `base` whose lock file says that scankit made them and that no
// process has locked. Returns those that it removed.
std::vector<std::string> remove_dead_folders(const std::string& base);

// Files that are trusted because nobody else can have written them: caches, and the compilers in them. A
// hash next to the bytes would prove nothing, because an attacker who plants the bytes writes the hash
// too. The rule is pip's, applied to every user: the owner must be this user or root, and neither the
// group nor others may write.

// Checks a directory, following links: ~/.cache is a link on many clusters. Errc::NotFound:
// nothing is there.
Result<void> check_private_folder(const std::string& path);
// Checks a file or directory inside a private one. A link is refused: its target may belong to anybody.
Result<void> check_private_entry(const std::string& path);
// Reads a regular file by the same rule. It judges the open descriptor, so that nobody can exchange the
// file between the check and the read, and it never waits for a FIFO.
Result<std::string> read_private_file(const std::string& path, std::size_t limit);
// Creates the missing directories of the path with mode 0700, whatever the umask. Existing ones keep
// their mode; they are judged by check_private_folder() when they are used.
Result<void> make_private_folders(const std::string& path);
// Takes the right to write from the group and from others, for all that is below a folder of ours: installers
// obey the umask, which is 002 on many machines.
Result<void> make_tree_private(const std::string& folder);

}  // namespace scankit

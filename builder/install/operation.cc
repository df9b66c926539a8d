// SPDX-License-Identifier: Apache-2.0
#include "builder/install/operation.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include "doctor/base/files.h"

namespace scankit {
namespace {

std::optional<struct stat> look(const std::string& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0) return std::nullopt;
  return info;
}

bool is_there(const std::string& path) { return look(path).has_value(); }

bool same_file(const std::string& a, const std::string& b) {
  const auto first = look(a), second = look(b);
  return first && second && first->st_dev == second->st_dev && first->st_ino == second->st_ino;
}

Error refused(const std::string& what, const std::string& from, const std::string& to) {
  const Errc code = errno == EACCES || errno == EPERM || errno == EROFS ? Errc::PermissionDenied : Errc::Io;
  return {code, "cannot " + what + " " + from + " to " + to + ": " + std::strerror(errno), ""};
}

// Fails where `to` exists: what appeared there meanwhile is not ours to overwrite. A kernel or file system
// without RENAME_NOREPLACE gets the plain rename; the lock keeps other fixers out.
Result<void> move(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) != 0) {
    if (errno == EEXIST)
      return Error{Errc::Conflict, "cannot move " + from + " to " + to + ": something is there", ""};
    if (errno != EINVAL && errno != ENOSYS) return refused("move", from, to);
    if (is_there(to))
      return Error{Errc::Conflict, "cannot move " + from + " to " + to + ": something is there", ""};
    if (::rename(from.c_str(), to.c_str()) != 0) return refused("move", from, to);
  }
  SCANKIT_CHECK(fsync_directory(path_dirname(to)));
  return fsync_directory(path_dirname(from));
}

Result<void> move_over(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return refused("move", from, to);
  SCANKIT_CHECK(fsync_directory(path_dirname(to)));
  return fsync_directory(path_dirname(from));
}

// A second name for the same bytes, so that the first can be taken over by a rename.
Result<void> add_name(const std::string& file, const std::string& name) {
  if (::linkat(AT_FDCWD, file.c_str(), AT_FDCWD, name.c_str(), 0) != 0 && errno != EEXIST)
    return refused("link", file, name);
  return fsync_directory(path_dirname(name));
}

Result<void> undo_replace(const Operation& op) {
  if (!is_there(op.backup)) return {};
  // The backup is still a second name of the target: nothing was replaced yet, or all was put back.
  if (same_file(op.backup, op.target)) {
    if (::unlink(op.backup.c_str()) != 0) return refused("remove", op.backup, "nothing");
    return {};
  }
  if (is_there(op.target)) SCANKIT_CHECK(add_name(op.target, op.staged));
  return move_over(op.backup, op.target);
}

}  // namespace

const char* kind_name(Operation::Kind kind) {
  switch (kind) {
    case Operation::Kind::Place:
      return "place";
    case Operation::Kind::Save:
      return "save";
    case Operation::Kind::Replace:
      return "replace";
  }
  return "";
}

Result<void> apply(const Operation& op) {
  switch (op.kind) {
    case Operation::Kind::Place:
      return is_there(op.staged) ? move(op.staged, op.target) : Result<void>();
    case Operation::Kind::Save:
      return is_there(op.backup) ? Result<void>() : move(op.target, op.backup);
    case Operation::Kind::Replace:
      if (!is_there(op.staged)) return {};
      SCANKIT_CHECK(add_name(op.target, op.backup));
      return move_over(op.staged, op.target);
  }
  return {};
}

Result<void> undo(const Operation& op) {
  switch (op.kind) {
    case Operation::Kind::Place:
      // Not there: pip removed it, or it never came.
      return !is_there(op.staged) && is_there(op.target) ? move(op.target, op.staged) : Result<void>();
    case Operation::Kind::Save:
      return is_there(op.backup) ? move(op.backup, op.target) : Result<void>();
    case Operation::Kind::Replace:
      return undo_replace(op);
  }
  return {};
}

Result<void> can_undo(const Operation& op) {
  if (op.kind != Operation::Kind::Save && !op.sha256.empty() && is_there(op.target)) {
    SCANKIT_TRY(const std::string now, sha256_file(op.target));
    if (now != op.sha256)
      return Error{Errc::Conflict, op.target + " is no longer the file that scankit put there",
                   "move it away, then run scankit restore again"};
  }
  if (op.kind == Operation::Kind::Save && is_there(op.backup) && is_there(op.target))
    return Error{Errc::Conflict, op.target + " exists again, so that the saved one cannot go back there",
                 "move it away, then run scankit restore again; the saved one is " + op.backup};
  if (op.kind != Operation::Kind::Place && !is_there(op.backup))
    return Error{Errc::NotFound, "the backup " + op.backup + " is gone: " + op.target + " cannot be put back",
                 ""};
  return {};
}

}  // namespace scankit

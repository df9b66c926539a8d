// SPDX-License-Identifier: Apache-2.0
// Every function here must be repeatable: it looks at which of the names exist and sees from that how far an
// earlier call came that was killed. fix/kill_test.cc kills a transaction at each of its system calls.
#include "builder/fix/operation.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>

#include "builder/fix/tree.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"

namespace scankit {
namespace {

std::optional<struct stat> look(const std::string& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0) return std::nullopt;
  return info;
}

bool same_file(const std::string& a, const std::string& b) {
  const auto first = look(a), second = look(b);
  return first && second && first->st_dev == second->st_dev && first->st_ino == second->st_ino;
}

Errc code_of(int number) {
  return number == EACCES || number == EPERM || number == EROFS ? Errc::PermissionDenied : Errc::Io;
}

Error refused_move(const std::string& from, const std::string& to) {
  const int number = errno;
  return {code_of(number), say("cannot move {} to {}: {}", from, to, std::strerror(number)), ""};
}

Error something_is_there(const std::string& from, const std::string& to) {
  return {Errc::Conflict, say("cannot move {} to {}: the target exists", from, to), ""};
}

// Fails if `to` exists: what appeared there meanwhile is not ours to overwrite. If the kernel or the file
// system does not know RENAME_NOREPLACE, this is a check and a plain rename; the lock keeps other fixes out.
Result<void> move(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE) != 0) {
    if (errno == EEXIST) return something_is_there(from, to);
    if (errno != EINVAL && errno != ENOSYS) return refused_move(from, to);
    if (is_there(to)) return something_is_there(from, to);
    if (::rename(from.c_str(), to.c_str()) != 0) return refused_move(from, to);
  }
  SCANKIT_CHECK(fsync_directory(path_dirname(to)));
  return fsync_directory(path_dirname(from));
}

// rename(2) replaces `to` in one step, but does nothing if both are names of one file: callers rule that out.
Result<void> move_over(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return refused_move(from, to);
  SCANKIT_CHECK(fsync_directory(path_dirname(to)));
  return fsync_directory(path_dirname(from));
}

// Gives the bytes a second name before a rename takes the first. EEXIST: an earlier call made it.
Result<void> add_name(const std::string& file, const std::string& name) {
  if (::linkat(AT_FDCWD, file.c_str(), AT_FDCWD, name.c_str(), 0) != 0 && errno != EEXIST) {
    const int number = errno;
    return Error{code_of(number), say("cannot link {} to {}: {}", file, name, std::strerror(number)), ""};
  }
  return fsync_directory(path_dirname(name));
}

Result<void> undo_replace(const Operation& op) {
  if (!is_there(op.backup)) return {};
  // The backup is still a second name of the target: nothing was replaced yet, or all was put back.
  if (same_file(op.backup, op.target)) {
    if (::unlink(op.backup.c_str()) == 0) return {};
    const int number = errno;
    return Error{code_of(number), say("cannot remove {}: {}", op.backup, std::strerror(number)), ""};
  }
  if (is_there(op.target)) SCANKIT_CHECK(add_name(op.target, op.staged));
  return move_over(op.backup, op.target);
}

// Puts the old files of a tree back. What an interrupted installer left cannot be told from what the
// user installed since, so it is kept in BACKUP.found; what a noted installer brought is dropped with
// the staging directory.
Result<void> undo_tree(const Operation& op, std::vector<std::string>& notes) {
  if (!is_there(op.backup)) return {};
  const std::string found = op.backup + ".found", dropped = op.staged + ".undone";
  const bool keep = is_there(found) || ended_unnoted(op.backup);
  const std::string& aside = keep ? found : dropped;
  SCANKIT_CHECK(make_directories(aside));
  SCANKIT_TRY(const auto lost, restore_tree(op.target, op.backup, aside));
  for (const std::string& file : lost)
    notes.push_back(say("{} was modified in place by the installer: its old content is lost",
                        path_join(op.target, file)));
  if (::rmdir(aside.c_str()) != 0 && keep)
    notes.push_back(say("new files found in {} were moved to {}", op.target, found));
  return move(op.backup, op.staged);  // names of files that are all back; dropped with the rest
}

Result<void> undo_keep(const Operation& op, std::vector<std::string>& notes) {
  if (op.backup.empty() ? !is_there(op.target) : !is_there(op.backup)) return {};
  if (was_edited(op)) {
    notes.push_back(say("{} was edited since and is left unchanged", op.target));
    return {};
  }
  return op.backup.empty() ? move(op.target, op.staged) : move_over(op.backup, op.target);
}

}  // namespace

bool was_edited(const Operation& op) {
  if (op.kind != Operation::Kind::Keep || op.sha256.empty() || !is_there(op.target)) return false;
  const auto now = sha256_file(op.target);
  return now && *now != op.sha256;
}

const char* kind_name(Operation::Kind kind) {
  switch (kind) {
    case Operation::Kind::Place:
      return "place";
    case Operation::Kind::Save:
      return "save";
    case Operation::Kind::Replace:
      return "replace";
    case Operation::Kind::Tree:
      return "tree";
    case Operation::Kind::Keep:
      return "keep";
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
    case Operation::Kind::Tree:
    case Operation::Kind::Keep:
      return is_there(op.staged) ? move(op.staged, op.backup) : Result<void>();
  }
  return {};
}

Result<void> undo(const Operation& op, std::vector<std::string>& notes) {
  switch (op.kind) {
    case Operation::Kind::Place:
      // Not there: pip removed it, or it never came.
      return !is_there(op.staged) && is_there(op.target) ? move(op.target, op.staged) : Result<void>();
    case Operation::Kind::Save:
      return is_there(op.backup) ? move(op.backup, op.target) : Result<void>();
    case Operation::Kind::Replace:
      return undo_replace(op);
    case Operation::Kind::Tree:
      return undo_tree(op, notes);
    case Operation::Kind::Keep:
      return undo_keep(op, notes);
  }
  return {};
}

Result<void> can_undo(const Operation& op) {
  const bool placed = op.kind == Operation::Kind::Place || op.kind == Operation::Kind::Replace;
  if (placed && !op.sha256.empty() && is_there(op.target)) {
    SCANKIT_TRY(const std::string now, sha256_file(op.target));
    if (now != op.sha256)
      return Error{Errc::Conflict, say("{} is no longer the file that scankit installed", op.target),
                   say("move it away, then run scankit restore again")};
  }
  if (op.kind == Operation::Kind::Save && is_there(op.backup) && is_there(op.target))
    return Error{Errc::Conflict, say("{} exists again, so the backup cannot be restored there", op.target),
                 say("move it away, then run scankit restore again; the saved one is {}", op.backup)};
  if (op.kind != Operation::Kind::Place && !op.backup.empty() && !is_there(op.backup))
    return Error{Errc::NotFound,
                 say("the backup {} no longer exists: {} cannot be restored", op.backup, op.target), ""};
  return {};
}

}  // namespace scankit

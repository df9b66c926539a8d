// SPDX-License-Identifier: Apache-2.0
#include "builder/fix/tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "builder/fix/transaction.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"

namespace scankit::fix {
namespace {

using Kind = TreeEntry::Kind;

// The parts of a copy: the old files, the list of what was there, and the list of changes.
std::string files_of(const std::string& copy) { return copy + "/files"; }
std::string before_of(const std::string& copy) { return copy + "/before"; }
std::string after_of(const std::string& copy) { return copy + "/after"; }

Error refused(const std::string& path) {
  const int number = errno;
  const bool forbidden = number == EACCES || number == EPERM || number == EROFS;
  return {forbidden ? Errc::PermissionDenied : Errc::Io,
          message("cannot back up or restore {}: {}", path, std::strerror(number)), ""};
}

// Flushes the whole file system: an fsync of each of thousands of directories would take minutes.
Result<void> flush(const std::string& folder) {
  const Descriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.get() < 0 || ::syncfs(fd.get()) != 0) return refused(folder);
  return {};
}

// Small files that pip and conda write into. Everything else they replace.
bool rewritten_in_place(const std::string& path, const TreeEntry& entry) {
  constexpr std::uint64_t kSmall = 1u << 20;
  return entry.size <= kSmall &&
         (path.ends_with(".pth") || path.find(".dist-info/") != std::string::npos ||
          path.find(".egg-info/") != std::string::npos || path == "conda-meta/history");
}

// A copy with mode, times and, for root, owner. `to` must not exist.
Result<void> copy_file(const std::string& from, const std::string& to) {
  struct stat info;
  if (::lstat(from.c_str(), &info) != 0) return refused(from);
  const Descriptor source(::open(from.c_str(), O_RDONLY | O_CLOEXEC));
  if (source.get() < 0) return refused(from);
  const Descriptor fd(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (fd.get() < 0) return refused(to);
  std::string buffer(1u << 18, '\0');
  for (;;) {
    const ssize_t got = ::read(source.get(), buffer.data(), buffer.size());
    if (got < 0) return refused(from);
    if (got == 0) break;
    for (ssize_t done = 0; done < got;) {
      const ssize_t put = ::write(fd.get(), buffer.data() + done, static_cast<std::size_t>(got - done));
      if (put < 0) return refused(to);
      done += put;
    }
  }
  // Only root may give a file away; for everybody else the owner is right already.
  if (::geteuid() == 0 && ::fchown(fd.get(), info.st_uid, info.st_gid) != 0) return refused(to);
  const std::array<timespec, 2> times = {info.st_atim, info.st_mtim};
  if (::fchmod(fd.get(), info.st_mode & 07777) != 0 || ::futimens(fd.get(), times.data()) != 0)
    return refused(to);
  return {};
}

// Also of a symbolic link: the link itself gets the second name.
Result<void> link_file(const std::string& from, const std::string& to) {
  if (::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), 0) != 0) return refused(from);
  return {};
}

// Keeps one file: a link, or a copy if it may be written into or if the link is refused (another user's file,
// one mounted over, too many names). Reads the errno that link_file() left, so nothing may come in between.
Result<void> keep_file(const std::string& from, const std::string& to, const std::string& path,
                       TreeEntry& entry) {
  const bool file = entry.kind == Kind::File;
  entry.copied = file && rewritten_in_place(path, entry);
  if (entry.copied) return copy_file(from, to);
  const auto linked = link_file(from, to);
  if (linked || !file || (errno != EXDEV && errno != EPERM && errno != EMLINK)) return linked;
  entry.copied = true;
  return copy_file(from, to);
}

// A directory with the mode of `like`, always writable for us. One that exists is fine.
Result<void> make_folder(const std::string& like, const std::string& folder) {
  struct stat info;
  const mode_t mode = ::lstat(like.c_str(), &info) == 0 ? info.st_mode & 07777 : 0755;
  if (::mkdir(folder.c_str(), 0700) != 0)
    return errno == EEXIST ? Result<void>() : Result<void>(refused(folder));
  if (::chmod(folder.c_str(), mode | 0700) != 0) return refused(folder);
  return {};
}

// What differs, as it is now; `now` may be reduced to the paths of interest.
TreeList changed(const TreeList& before, const TreeList& now) {
  TreeList after;
  for (const auto& [path, old] : before)
    if (now.find(path) == now.end()) after[path] = {.kind = Kind::Gone};
  for (const auto& [path, entry] : now) {
    const auto old = before.find(path);
    const bool same =
        old != before.end() && old->second.kind == entry.kind &&
        (entry.kind == Kind::Folder || (old->second.inode == entry.inode && old->second.size == entry.size &&
                                        old->second.mtime_ns == entry.mtime_ns));
    if (!same) after[path] = entry;
  }
  return after;
}

// The next save_tree() copies these files, and when its copy is put back the file has another inode: only its
// bytes show then that it is still what the installer left. Files that are linked keep their inode. Where a link was
// refused, every file may be copied the next time.
void note_hashes(const std::string& root, const TreeList& before, TreeList& after) {
  const bool refused = std::ranges::any_of(before, [](const auto& one) {
    return one.second.copied && !rewritten_in_place(one.first, one.second);
  });
  for (auto& [path, entry] : after)
    if (entry.kind == Kind::File && (refused || rewritten_in_place(path, entry)))
      if (auto hash = sha256_file(path_join(root, path))) entry.sha256 = *std::move(hash);
}

// Whether the file is what the installer left under that name.
bool is_as_noted(const std::string& file, const TreeEntry& noted) {
  struct stat info;
  const bool there = ::lstat(file.c_str(), &info) == 0;
  if (noted.kind == Kind::Gone || !there) return noted.kind == Kind::Gone && !there;
  const TreeEntry now = entry_of(info);
  if (now.kind != noted.kind || now.size != noted.size) return false;
  if (now.inode == noted.inode && now.mtime_ns == noted.mtime_ns) return true;
  const auto hash = noted.sha256.empty() ? Result<std::string>("") : sha256_file(file);
  return hash && !hash->empty() && *hash == noted.sha256;
}

// Whether the file was written into: its backup is a name of the same file, so the old bytes are gone.
bool lost(const TreeEntry& old, const TreeEntry& now) {
  return old.kind == Kind::File && now.kind == Kind::File && !old.copied && old.inode == now.inode;
}

TreeChanges sorted_out(const TreeList& before, const TreeList& after) {
  TreeChanges changes;
  for (const auto& [path, entry] : after) {
    const auto old = before.find(path);
    if (old == before.end()) {
      (entry.kind == Kind::Folder ? changes.added_folders : changes.added).push_back(path);
    } else if (entry.kind == Kind::Gone) {
      changes.removed.push_back(path);
    } else {
      (lost(old->second, entry) ? changes.rewritten : changes.replaced).push_back(path);
    }
  }
  return changes;
}

// One restore_tree() call. `root` and `copy` may have been prepared by somebody else, so no path is followed
// over a symbolic link below them.
struct Restoration {
  const std::string &root, &copy, &aside;
  unsigned moved = 0;
  std::set<std::string> plain_target = {}, plain_copy = {};  // folders on whose way there is no link

  // A list that somebody else wrote may name a path behind a link of the tree.
  Result<void> refuse_links(const std::string& path) {
    if (!passes_a_link(root, path, plain_target) && !passes_a_link(files_of(copy), path, plain_copy))
      return {};
    return Error{Errc::Conflict,
                 message("cannot restore {}: its path contains a symbolic link", path_join(root, path)),
                 message("remove the link, then run scankit restore again")};
  }

  std::string aside_for(const std::string& path) {
    return path_join(aside, std::to_string(++moved) + "-" + path_basename(path));
  }

  Result<void> move_aside(const std::string& path) {
    const std::string from = path_join(root, path);
    if (passes_a_link(root, path, plain_target) || !is_there(from)) return {};  // its folder was put back
    std::string to = aside_for(path);
    while (is_there(to)) to = aside_for(path);  // of a run before that was killed
    return ::rename(from.c_str(), to.c_str()) == 0 ? Result<void>() : Result<void>(refused(from));
  }

  // The name never dangles: the old file gets a name in `aside`, which is renamed over the new one. A
  // target that is the old file already must not come to that rename: rename(2) does nothing if both names
  // are of one file.
  Result<void> put_back(const std::string& path, const TreeEntry& old) {
    SCANKIT_CHECK(refuse_links(path));
    const std::string target = path_join(root, path), kept = path_join(files_of(copy), path);
    if (old.kind == Kind::Folder) {
      struct stat info;
      if (::lstat(target.c_str(), &info) == 0 && !S_ISDIR(info.st_mode)) SCANKIT_CHECK(move_aside(path));
      return make_folder(kept, target);
    }
    struct stat now, before;
    if (::lstat(kept.c_str(), &before) != 0) return refused(kept);
    const bool there = ::lstat(target.c_str(), &now) == 0;
    if (there && now.st_ino == before.st_ino && now.st_dev == before.st_dev) return {};
    if (there) SCANKIT_CHECK(S_ISDIR(now.st_mode) ? move_aside(path) : link_aside(path));
    const std::string name = path_join(aside, "back");
    ::unlink(name.c_str());
    SCANKIT_CHECK(link_file(kept, name));
    return ::rename(name.c_str(), target.c_str()) == 0 ? Result<void>() : Result<void>(refused(target));
  }

  // Keeps the new file under a name in `aside`, while its own name stays until the old file takes it over.
  Result<void> link_aside(const std::string& path) {
    std::string to = aside_for(path);
    while (is_there(to)) to = aside_for(path);
    return link_file(path_join(root, path), to);
  }

  // Removes a directory that the installer made, with Python's cache in it, unless it has other files.
  void drop_folder(const std::string& path) {
    const std::string folder = path_join(root, path);
    if (passes_a_link(root, path + "/", plain_target)) return;
    std::error_code ignored;
    std::filesystem::remove_all(folder + "/__pycache__", ignored);
    ::rmdir(folder.c_str());
  }
};

}  // namespace

bool is_there(const std::string& path) {
  struct stat info;
  return ::lstat(path.c_str(), &info) == 0;
}

Result<void> save_tree(const std::string& root, const std::string& copy) {
  SCANKIT_TRY(TreeList list, list_tree(root));
  SCANKIT_CHECK(make_directories(copy));
  SCANKIT_CHECK(make_folder(root, files_of(copy)));
  for (auto& [path, entry] : list) {
    const std::string from = path_join(root, path), to = path_join(files_of(copy), path);
    SCANKIT_CHECK(entry.kind == Kind::Folder ? make_folder(from, to) : keep_file(from, to, path, entry));
  }
  SCANKIT_CHECK(write_tree_list(before_of(copy), list));
  return flush(copy);
}

Result<TreeChanges> note_changes(const std::string& root, const std::string& copy) {
  SCANKIT_TRY(const TreeList before, read_tree_list(before_of(copy)));
  SCANKIT_TRY(const TreeList now, list_tree(root));
  TreeList after = changed(before, now);
  note_hashes(root, before, after);
  SCANKIT_CHECK(write_tree_list(after_of(copy), after));
  return sorted_out(before, after);
}

void drop_unchanged(const std::string& copy) {
  const auto before = read_tree_list(before_of(copy)), after = read_tree_list(after_of(copy));
  if (!before || !after) return;
  TreeList kept;
  std::set<std::string> plain;
  for (auto entry = before->rbegin(); entry != before->rend(); ++entry) {  // what a folder holds before it
    if (after->count(entry->first) != 0 || passes_a_link(files_of(copy), entry->first, plain)) {
      kept.insert(*entry);
      continue;
    }
    const std::string path = path_join(files_of(copy), entry->first);
    (void)(entry->second.kind == Kind::Folder ? ::rmdir(path.c_str()) : ::unlink(path.c_str()));
  }
  if (kept.size() != before->size()) (void)write_tree_list(before_of(copy), kept).has_value();
}

bool ended_unnoted(const std::string& copy) { return !is_there(after_of(copy)); }

Result<std::vector<std::string>> restore_tree(const std::string& root, const std::string& copy,
                                              const std::string& aside) {
  SCANKIT_TRY(const TreeList before, read_tree_list(before_of(copy)));
  if (ended_unnoted(copy)) {
    // Written down first: a kill in here must not make what is put back look like what was there.
    SCANKIT_CHECK(note_changes(root, copy));
  }
  SCANKIT_TRY(const TreeList after, read_tree_list(after_of(copy)));
  const TreeChanges changes = sorted_out(before, after);
  SCANKIT_CHECK(make_directories(aside));
  Restoration work{root, copy, aside};
  for (const auto& [path, entry] : after)  // a folder before what it holds
    if (const auto old = before.find(path); old != before.end() && !lost(old->second, entry))
      SCANKIT_CHECK(work.put_back(path, old->second));
  for (const std::string& path : changes.added) SCANKIT_CHECK(work.move_aside(path));
  for (auto path = changes.added_folders.rbegin(); path != changes.added_folders.rend(); ++path)
    work.drop_folder(*path);
  SCANKIT_CHECK(flush(root));
  return changes.rewritten;
}

Result<void> can_restore_tree(const std::string& root, const std::string& copy,
                              const std::set<std::string>& ours) {
  SCANKIT_TRY(const TreeList after, read_tree_list(after_of(copy)));
  for (const auto& [path, entry] : after) {
    const std::string full = path_join(root, path);
    if (entry.kind == Kind::Folder || ours.count(full) != 0) continue;
    if (!is_as_noted(full, entry))
      return Error{Errc::Conflict, message("{} was changed after the installer wrote it", full),
                   message("the packages were changed since: restore them with their installer")};
  }
  return {};
}

std::size_t changed_files(const std::string& copy) {
  const auto after = read_tree_list(after_of(copy));
  return after ? after->size() : 0;
}

}  // namespace scankit::fix

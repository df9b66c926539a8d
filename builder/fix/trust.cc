// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>

#include "builder/fix/transaction.h"
#include "builder/fix/tree.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"

namespace scankit::fix {
namespace {

using OpKind = Operation::Kind;

std::string environment_of(const StateFolder& state) { return path_dirname(state.root()); }

bool is_at_or_below(const std::string& path, const std::string& folder) {
  return path == folder || path.starts_with(folder == "/" ? folder : folder + "/");
}

bool is_folder(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

std::string without_links(const std::string& path) {
  std::error_code code;
  const auto real = std::filesystem::weakly_canonical(path, code);
  return code ? path : real.string();
}

// The path that undoing would touch. A tree is entered, so its own links count; any other target is a name in
// its directory, and the name itself is not followed.
std::string real_place(const Operation& op) {
  if (op.kind == OpKind::Tree) return without_links(op.target);
  return path_join(without_links(path_dirname(op.target)), path_basename(op.target));
}

// Whether Python could import the target: a module or a package that hid another one and was moved away for
// that. Never ".bashrc" or "authorized_keys", by which a planted journal could take over an account.
bool is_importable(const Operation& op) {
  const std::string name = path_basename(op.target);
  constexpr std::array kEndings = {".so", ".py", ".pyc", ".pyd", ".dll", ".dylib", ".dist-info", ".egg-info"};
  if (std::ranges::any_of(kEndings, [&](const char* ending) { return name.ends_with(ending); }))
    return !name.starts_with('.');
  const bool identifier = !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           c >= 0x80;
  });
  return identifier && (is_folder(op.backup) || is_folder(op.target));
}

// Whether the target is a file that a fix writes in the uv project around the environment.
bool is_of_the_project(const Operation& op, const std::string& environment) {
  const std::string project = path_dirname(environment);
  if (op.kind == OpKind::Keep) {
    const std::string name = path_basename(op.target);
    return path_dirname(op.target) == project && (name == "pyproject.toml" || name == "uv.lock");
  }
  const bool placed = op.kind == OpKind::Place || op.kind == OpKind::Replace;
  return placed && path_dirname(op.target) == path_join(project, ".scankit/wheels") &&
         op.target.ends_with(".whl");
}

// Our backup directory, or one next to a file that was moved away on another disk.
bool is_own_backup(const StateFolder& state, const Journal& journal, const Operation& op) {
  const std::string folder = path_dirname(op.backup);
  return folder == state.backup(journal.id) ||
         (op.kind == OpKind::Save &&
          folder == path_join(path_dirname(op.target), ".scankit/backup/" + journal.id));
}

// The rules of check_journal() for one operation. All paths are normalised already (journal.cc).
bool could_be_ours(const StateFolder& state, const Journal& journal, const Operation& op) {
  if (!op.staged.empty() && path_dirname(op.staged) != state.staging(journal.id)) return false;
  if (!op.backup.empty() && !is_own_backup(state, journal, op)) return false;
  const std::string environment = environment_of(state);
  if (is_at_or_below(op.target, state.root())) return false;
  if (is_at_or_below(op.target, environment) || is_of_the_project(op, environment)) return true;
  const std::string name = path_basename(op.target);
  if (op.kind == OpKind::Save) return is_importable(op);
  // The project of an environment that lies elsewhere (UV_PROJECT_ENVIRONMENT).
  return op.kind == OpKind::Keep && (name == "pyproject.toml" || name == "uv.lock");
}

// The rule of every cache of ours (doctor/base/files.h), with what is at stake here.
Result<void> check_owner(const std::string& path) {
  auto own = check_private_entry(path);
  if (own || own.error().code == Errc::NotFound) return {};  // gone meanwhile
  Error error = own.error();
  error.message = message("{}, and scankit uses only its own files", error.message);
  error.hint = message("check its contents: if they are not yours, remove it; otherwise, {}",
                       error.hint.empty() ? message("give it back to its owner") : error.hint);
  return error;
}

}  // namespace

Result<void> check_own_folder(const std::string& folder) {
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0) return {};
  if (!S_ISDIR(info.st_mode))
    return Error{Errc::PermissionDenied,
                 S_ISLNK(info.st_mode)
                     ? message("{} is a symbolic link, where scankit creates a directory", folder)
                     : message("{} is not a directory, although scankit creates one there", folder),
                 message("scankit did not create it: remove {}", folder)};
  return check_owner(folder);
}

Result<void> check_own_state(const StateFolder& state) {
  SCANKIT_CHECK(check_own_folder(state.root()));
  for (const char* name : {"/journal", "/staging", "/backup"}) {
    const std::string folder = state.root() + name;
    SCANKIT_CHECK(check_own_folder(folder));
    std::error_code code;
    for (const auto& entry : std::filesystem::directory_iterator(folder, code)) {
      const std::string path = entry.path();
      struct stat info {};
      if (::lstat(path.c_str(), &info) != 0) continue;  // gone meanwhile
      if (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode))
        return Error{Errc::PermissionDenied,
                     message("{} is neither a file nor a directory created by scankit", path),
                     message("scankit did not create it: remove {}", path)};
      SCANKIT_CHECK(check_owner(path));
    }
  }
  return {};
}

bool is_journal_id(const std::string& id) {
  constexpr std::size_t kLeast = 4, kMost = 9;
  return id.size() >= kLeast && id.size() <= kMost &&
         std::ranges::all_of(id, [](char c) { return c >= '0' && c <= '9'; });
}

Result<void> check_journal(const StateFolder& state, const Journal& journal) {
  for (const Operation& op : journal.operations) {
    if (!could_be_ours(state, journal, op))
      return Error{
          Errc::Malformed,
          message("{} refers to {}, which no fix of this environment changes",
                  state.root() + "/journal/" + journal.id + ".json", op.target),
          message("scankit did not write it for this environment: if the environment was copied or moved, "
                  "remove {}",
                  state.root())};
    if (op.kind != OpKind::Tree) continue;
    for (const std::string& folder : {op.staged, op.backup, op.backup + "/files"})
      if (is_there(folder) && !is_folder(folder))
        return Error{Errc::Malformed,
                     message("{} is not a directory, although scankit creates one there", folder),
                     message("scankit did not create it: remove {}", state.root())};
  }
  return {};
}

std::set<std::string> outside_of(const StateFolder& state, const std::vector<Journal>& journals) {
  const std::string environment = environment_of(state), inside = without_links(environment);
  std::set<std::string> outside;
  for (const Journal& journal : journals)
    for (const Operation& op : journal.operations) {
      const std::string place = real_place(op);
      if (!is_at_or_below(place, inside) && !is_of_the_project(op, environment)) outside.insert(place);
    }
  return outside;
}

bool passes_a_link(const std::string& root, const std::string& path, std::set<std::string>& checked) {
  for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const std::string folder = path.substr(0, slash);
    if (checked.contains(folder)) continue;
    struct stat info {};
    if (::lstat(path_join(root, folder).c_str(), &info) == 0 && S_ISLNK(info.st_mode)) return true;
    checked.insert(folder);
  }
  return false;
}

}  // namespace scankit::fix

// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>

#include <filesystem>
#include <system_error>

#include "builder/fix/distribution.h"
#include "builder/fix/execute.h"
#include "builder/fix/transaction.h"
#include "builder/fix/tree.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"

namespace scankit::fix {

namespace {

// True if one of them cannot be examined: the rename then says what is wrong.
bool one_file_system(const std::string& path, const std::string& folder) {
  struct stat file, other;
  return ::lstat(path.c_str(), &file) != 0 || ::stat(folder.c_str(), &other) != 0 ||
         file.st_dev == other.st_dev;
}

// The line, with a comment that says where it came from.
std::string line_of(const SetVariable& variable, const std::string& fix) {
  std::string line("\n# scankit fix ");
  line.append(fix).append("; scankit restore takes it out\n").append(shell_line(variable)).append("\n");
  return line;
}

}  // namespace

Result<void> Staging::make_folders(const std::string& site) const {
  for (const std::string& folder : {staging_, backup_, site}) SCANKIT_CHECK(make_directories(folder));
  return {};
}

// A number makes the name unique, since two files may have the same name in two directories.
std::string Staging::backup_for(const std::string& path) {
  return path_join(backup_, std::to_string(++saved_) + "-" + path_basename(path));
}

Result<void> Staging::stage_module(const Host& host, const compile::BuiltModule& built,
                                   const std::string& python) const {
  const std::string file = path_join(staging_, built.file);
  SCANKIT_CHECK(compile::write_module(host, built, file));
  SCANKIT_CHECK(verify_loads(python, built.module, file, built.flavor == compile::Flavor::Torch));
  SCANKIT_CHECK(make_directories(path_join(staging_, dist_info_name(built.module))));
  for (const InstalledFile& part : dist_info_files(built))
    SCANKIT_CHECK(write_file_atomically(path_join(staging_, part.path), part.bytes));
  return {};
}

Result<std::vector<Operation>> Staging::install(const compile::BuiltModule& built, const std::string& site) {
  std::vector<Operation> operations;
  std::error_code code;
  for (const auto& entry : std::filesystem::directory_iterator(site, code)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(distribution_stem(built.module) + "-") && name.ends_with(".dist-info"))
      operations.push_back({Operation::Kind::Save, entry.path(), "", backup_for(entry.path()), ""});
  }
  if (code) return Error{Errc::Io, message("cannot read {}: {}", site, code.message()), ""};
  const std::string info = dist_info_name(built.module);
  const std::string& file = built.file;
  operations.push_back({Operation::Kind::Place, path_join(site, info), path_join(staging_, info), "", ""});
  const std::string target = path_join(site, file);
  const bool replaces = is_there(target);
  operations.push_back({replaces ? Operation::Kind::Replace : Operation::Kind::Place, target,
                        path_join(staging_, file), replaces ? backup_for(target) : "",
                        sha256_hex(built.bytes)});
  return operations;
}

// Replaces an older file of that name, if there is one.
Result<Operation> Staging::place_file(const std::string& target, const std::string& bytes) {
  SCANKIT_CHECK(make_directories(path_dirname(target)));
  if (!one_file_system(path_dirname(target), staging_))
    return Error{Errc::Unsupported, message("{} and {} are on different file systems", target, staging_), ""};
  const std::string staged = path_join(staging_, "file-" + std::to_string(++saved_));
  SCANKIT_CHECK(write_file_atomically(staged, bytes));
  const bool replaces = is_there(target);
  return Operation{replaces ? Operation::Kind::Replace : Operation::Kind::Place, target, staged,
                   replaces ? backup_for(target) : "", sha256_hex(bytes)};
}

// A directory of PYTHONPATH may be on another disk, from which nothing can be renamed into our backup. The
// backup is then in a .scankit next to the file.
Result<Operation> Staging::move_away(const std::string& path) {
  std::string backup = backup_for(path);
  if (!one_file_system(path, backup_)) {
    const std::string state = path_join(path_dirname(path), ".scankit");
    for (const std::string& folder : {state, path_join(state, "backup")})
      SCANKIT_CHECK(check_own_folder(folder));
    const std::string beside = path_join(state, "backup/" + path_basename(backup_));
    SCANKIT_CHECK(make_directories(beside));
    backup = path_join(beside, path_basename(backup));
  }
  return Operation{Operation::Kind::Save, path, "", backup, ""};
}

Result<Operation> Staging::set_variable(const SetVariable& variable, const std::string& fix) {
  const std::string staged = path_join(staging_, "script-" + std::to_string(++saved_));
  const bool replaces = is_there(variable.file);
  struct stat info = {};
  info.st_mode = 0644;
  std::string text;
  if (replaces) {
    if (::stat(variable.file.c_str(), &info) != 0)
      return Error{Errc::Io, message("cannot read {}", variable.file), ""};
    SCANKIT_TRY(text, read_whole_file(variable.file));
  }
  text += line_of(variable, fix);
  SCANKIT_CHECK(make_directories(path_dirname(variable.file)));
  SCANKIT_CHECK(write_file_atomically(staged, text, info.st_mode & 07777));
  return Operation{replaces ? Operation::Kind::Replace : Operation::Kind::Place, variable.file, staged,
                   replaces ? backup_for(variable.file) : "", sha256_hex(text)};
}

Result<Operation> Staging::leave_tree(const std::string& root) {
  const std::string name = "tree-" + std::to_string(++saved_);
  SCANKIT_CHECK(save_tree(root, path_join(staging_, name)));
  return Operation{Operation::Kind::Tree, root, path_join(staging_, name), path_join(backup_, name), ""};
}

Result<Operation> Staging::leave_file(const std::string& file) {
  const std::string staged = path_join(staging_, "left-" + std::to_string(++saved_));
  if (!is_there(file)) return Operation{Operation::Kind::Keep, file, staged, "", ""};
  struct stat info;
  if (::stat(file.c_str(), &info) != 0) return Error{Errc::Io, message("cannot read {}", file), ""};
  constexpr std::size_t kLimit = 256u << 20;
  SCANKIT_TRY(const std::string text, read_whole_file(file, kLimit));
  if (!one_file_system(file, backup_))
    return Error{Errc::Unsupported, message("{} and {} are on different file systems", file, backup_), ""};
  SCANKIT_CHECK(write_file_atomically(staged, text, info.st_mode & 07777));
  return Operation{Operation::Kind::Keep, file, staged, backup_for(file), ""};
}

}  // namespace scankit::fix

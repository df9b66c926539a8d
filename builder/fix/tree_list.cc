// SPDX-License-Identifier: Apache-2.0
#include <dirent.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <sstream>
#include <vector>

#include "builder/fix/tree.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"

namespace scankit::fix {
namespace {

// `below` is "" at the root. conda's pkgs and envs are its package cache and its other environments.
bool left_out(const std::string& below, const std::string& name) {
  if (name == "__pycache__" || name == ".scankit") return true;
  return below.empty() && (name == "pkgs" || name == "envs");
}

Result<std::vector<std::string>> names_in(const std::string& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> open(::opendir(folder.c_str()), ::closedir);
  if (!open) {
    const int number = errno;
    return Error{number == EACCES ? Errc::PermissionDenied : Errc::Io,
                 say("cannot read {}: {}", folder, std::strerror(number)), ""};
  }
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(open.get())) {
    const std::string name = static_cast<const char*>(entry->d_name);
    if (name != "." && name != "..") names.push_back(name);
  }
  return names;
}

}  // namespace

TreeEntry entry_of(const struct stat& info) {
  TreeEntry entry;
  entry.kind = S_ISDIR(info.st_mode)   ? TreeEntry::Kind::Folder
               : S_ISLNK(info.st_mode) ? TreeEntry::Kind::Link
                                       : TreeEntry::Kind::File;
  entry.inode = info.st_ino;
  entry.size = static_cast<std::uint64_t>(info.st_size);
  entry.mtime_ns = static_cast<std::int64_t>(info.st_mtim.tv_sec) * 1'000'000'000 + info.st_mtim.tv_nsec;
  return entry;
}

// Never follows a link, and skips everything but files, links and directories.
Result<TreeList> list_tree(const std::string& root) {
  TreeList list;
  std::vector<std::string> open = {""};
  while (!open.empty()) {
    const std::string below = open.back();
    open.pop_back();
    SCANKIT_TRY(const auto names, names_in(path_join(root, below)));
    for (const std::string& name : names) {
      if (left_out(below, name)) continue;
      const std::string path = below.empty() ? name : path_join(below, name);
      struct stat info;
      if (::lstat(path_join(root, path).c_str(), &info) != 0) continue;  // gone meanwhile
      if (!S_ISDIR(info.st_mode) && !S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode)) continue;
      list[path] = entry_of(info);
      if (S_ISDIR(info.st_mode)) open.push_back(path);
    }
  }
  return list;
}

namespace {

// A name is bytes: %XX stands for what would end a field or a line, and for what is not ASCII.
std::string escaped(const std::string& name) {
  static const char* digits = "0123456789ABCDEF";
  std::string text;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte > 0x20 && byte < 0x7f && byte != '%') {
      text += c;
      continue;
    }
    text += '%';
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

std::string unescaped(const std::string& text) {
  std::string name;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%' || i + 2 >= text.size()) {
      name += text[i];
      continue;
    }
    name += static_cast<char>(std::strtoul(text.substr(i + 1, 2).c_str(), nullptr, 16));
    i += 2;
  }
  return name;
}

// Whether the path stays in the tree: a list that somebody else may have written moves files.
bool is_below(const std::string& name) {
  return !name.empty() && name[0] != '/' && path_normalize(name) == name && name != ".." && name != "." &&
         !name.starts_with("../") && name.find('\0') == std::string::npos;
}

}  // namespace

Result<void> write_tree_list(const std::string& path, const TreeList& list) {
  std::ostringstream text;
  for (const auto& [name, entry] : list)
    text << static_cast<int>(entry.kind) << ' ' << entry.inode << ' ' << entry.size << ' ' << entry.mtime_ns
         << ' ' << entry.copied << ' ' << escaped(name) << (entry.sha256.empty() ? "" : " ") << entry.sha256
         << '\n';
  return write_file_atomically(path, text.str());
}

Result<TreeList> read_tree_list(const std::string& path) {
  constexpr std::size_t kLimit = 512u << 20;
  SCANKIT_TRY(std::string text, read_whole_file(path, kLimit));
  std::istringstream lines(std::move(text));
  TreeList list;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    TreeEntry entry;
    int kind = -1;
    std::string name;
    const bool whole =
        !!(fields >> kind >> entry.inode >> entry.size >> entry.mtime_ns >> entry.copied >> name);
    fields >> entry.sha256;  // lists of earlier releases end with the name
    name = unescaped(name);
    if (!whole || !is_below(name) || kind < 0 || kind > static_cast<int>(TreeEntry::Kind::Gone))
      return Error{Errc::Malformed, message("{} is not a list written by this scankit", path), ""};
    entry.kind = static_cast<TreeEntry::Kind>(kind);
    list[name] = entry;
  }
  return list;
}

}  // namespace scankit::fix

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/probes/extensions/audit.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/probes/python/sys_path.h"

namespace scankit {
namespace {

constexpr std::size_t kFolderLimit = 200000, kDepthLimit = 64;  // a folder that holds itself ends somewhere

// Extensions and libraries alike: "_C.abi3.so", "libx.so.1".
bool is_versioned_library_name(const std::string& name) {
  const auto at = name.rfind(".so");
  if (at == std::string::npos || at == 0) return false;
  return name.find_first_not_of(".0123456789", at + 3) == std::string::npos;
}

// The standard library and the current folder hold no installed distribution. A .pth line leads to a project
// that is installed in place, or to the folder of another environment.
bool is_site(const PathEntry& entry) {
  return entry.exists && (entry.origin == "site" || entry.origin == "user-site" ||
                          entry.origin == "system-site" || entry.origin.starts_with("pth:"));
}

// Walks a directory and all below it. Links to directories are not followed.
class FolderWalk {
 public:
  FolderWalk(const Host& host, InstalledLibraries& found) : host_(host), found_(found) {}

  void visit(const std::string& folder, std::size_t depth) {
    if (depth > kDepthLimit || seen_.size() >= kFolderLimit || !seen_.insert(folder).second) return;
    const auto entries = host_.list(folder);
    if (!entries) {
      found_.unreadable.push_back(entries.error().message);
      return;
    }
    for (const DirEntry& entry : *entries) {
      const std::string path = folder + "/" + entry.name;
      if (entry.kind == FileKind::Directory) {
        if (entry.name != "__pycache__" && !entry.name.starts_with('.')) visit(path, depth + 1);
      } else if (is_versioned_library_name(entry.name) &&
                 (entry.kind == FileKind::Regular || is_file(path))) {
        take(path);
      }
    }
  }
  void take(const std::string& file) {
    found_.files.push_back(file);
    found_.by_name.emplace(path_basename(file), file);
  }
  bool reached_limit() const { return seen_.size() >= kFolderLimit; }

 private:
  bool is_file(const std::string& path) const {
    const auto info = host_.stat(path);
    return info && info->kind == FileKind::Regular;
  }

  const Host& host_;
  InstalledLibraries& found_;
  std::set<std::string> seen_;
};

// Each once, in the order in which they were found.
void add_folder(const std::string& folder, InstalledLibraries& found) {
  if (std::ranges::find(found.folders, folder) == found.folders.end()) found.folders.push_back(folder);
}

// What the finders of editable installs lead to: a package's folder, or the files beside a module's name.
void visit_editables(const Host& host, const Python& python, FolderWalk& walk, InstalledLibraries& found) {
  for (const std::string& text : python.editable_finders) {
    const auto mapping = editable_mapping(text);
    if (!mapping) continue;
    if (host.is_directory(mapping->folder)) {
      add_folder(path_dirname(mapping->folder), found);
      walk.visit(mapping->folder, 1);
    }
    for (const std::string& suffix : python.extension_suffixes) {
      const std::string file = mapping->folder + suffix;
      if (!host.exists(file) || std::ranges::find(found.files, file) != found.files.end()) continue;
      add_folder(path_dirname(file), found);
      walk.take(file);
    }
  }
}

// A file that several RECORDs list belongs to the first distribution in the order of sys.path.
void find_owners(const Host& host, const Snapshot& so_far, InstalledLibraries& found) {
  const auto own = [&](const std::string& name, std::string file) {
    found.by_owner[name].push_back(file);
    found.owners.emplace(std::move(file), name);
  };
  for (const Distribution& distribution : so_far.distributions.value)
    for (std::string& file : shared_libraries_of(host, distribution)) own(distribution.name, std::move(file));
  // No RECORD lists what an editable install builds in its project.
  for (const Distribution& distribution : so_far.distributions.value) {
    if (!distribution.editable || distribution.project.empty()) continue;
    for (const std::string& file : found.files)
      if (file.starts_with(distribution.project + "/") && !found.owners.contains(file))
        own(distribution.name, file);
  }
}

}  // namespace

InstalledLibraries find_installed_libraries(const Host& host, const Snapshot& so_far) {
  InstalledLibraries found;
  FolderWalk walk(host, found);
  for (const PathEntry& entry : so_far.python.value.sys_path) {
    if (!is_site(entry)) continue;
    if (std::ranges::find(found.folders, entry.path) != found.folders.end()) continue;
    found.folders.push_back(entry.path);
    walk.visit(entry.path, 0);
  }
  visit_editables(host, so_far.python.value, walk, found);
  if (walk.reached_limit())
    found.unreadable.push_back(message("only the first {} directories were searched", kFolderLimit));
  std::ranges::sort(found.files);
  find_owners(host, so_far, found);
  return found;
}

bool has_python_tag(const std::string& name) {
  const auto dot = name.find('.');
  if (dot == std::string::npos || !name.ends_with(".so")) return false;
  const std::string tag = name.substr(dot);
  return tag.starts_with(".cpython-") || tag.starts_with(".abi3") || tag.starts_with(".pypy") ||
         tag.starts_with(".graalpy");
}

// An interpreter without known suffixes refuses nothing.
Message why_not_for_this_python(const Python& python, const std::string& name) {
  if (!has_python_tag(name)) return {};
  const std::string suffix = name.substr(name.find('.'));
  const auto& known = python.extension_suffixes;
  if (known.empty() || std::ranges::find(known, suffix) != known.end()) return "";
  return message("suffix {} is not one of this Python's", suffix);
}

}  // namespace scankit

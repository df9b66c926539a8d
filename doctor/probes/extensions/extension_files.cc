// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/probes/extensions/extensions.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/probes/python/sys_path.h"

namespace scankit::probes {
namespace {

struct ModuleName {
  std::string leaf, parents;  // "b", "/a" of "a.b"
  explicit ModuleName(const std::string& module) {
    const auto dot = module.rfind('.');
    leaf = dot == std::string::npos ? module : module.substr(dot + 1);
    if (dot != std::string::npos) parents = "/" + module.substr(0, dot);
    std::ranges::replace(parents, '.', '/');
  }
};

// `entries` are sorted by name, as Host::list gives them.
bool holds(const std::vector<DirEntry>& entries, const std::string& name) {
  const auto it = std::ranges::lower_bound(entries, name, {}, &DirEntry::name);
  return it != entries.end() && it->name == name;
}

bool is_module_file_name(const std::string& name, const std::string& leaf) {
  return name.starts_with(leaf + ".") && (name.ends_with(".so") || name.ends_with(".pyd"));
}

// One module, walked over sys.path as importlib's FileFinder does: in each folder a package first, then
// extension suffixes in order, then source and bytecode.
class ModuleSearch {
 public:
  ModuleSearch(const Host& host, const Snapshot& so_far, const std::string& module, FolderListings& listings)
      : host_(host), so_far_(so_far), module_(module), name_(module), listings_(listings) {}

  std::vector<Extension> run() {
    const auto& sys_path = so_far_.python.value.sys_path;
    for (std::size_t i = 0; i < sys_path.size(); ++i)
      visit(sys_path[i].path + name_.parents, static_cast<int>(i));
    // The finders of editable installs come after sys.path (setuptools appends them to sys.meta_path).
    for (const std::string& text : so_far_.python.value.editable_finders)
      if (const auto mapping = editable_mapping(text); mapping && winner_.empty()) visit_mapping(*mapping);
    for (std::size_t i = 0; i < sys_path.size(); ++i) visit_eggs(sys_path[i].path);
    for (const Distribution& d : so_far_.distributions.value) visit_project(d);
    return std::move(found_);
  }

 private:
  // `index` is the directory's place in sys.path, or -1.
  void visit(const std::string& folder, int index) {
    const std::vector<DirEntry>& entries = listings_.of(folder);
    if (entries.empty()) return;
    if (holds(entries, name_.leaf)) visit_package(folder + "/" + name_.leaf);
    // `fitting` has the names that were taken as extensions of this Python; other files that look like the
    // module are listed with their suffix.
    std::set<std::string> fitting;
    for (const std::string& suffix : so_far_.python.value.extension_suffixes) {
      const std::string file = name_.leaf + suffix, path = folder + "/" + file;
      if (!holds(entries, file) || host_.is_directory(path)) continue;
      fitting.insert(file);
      if (leads_nowhere(path)) {  // import asks whether it is a file, and goes on
        add(path, index, message("a link to a file that does not exist"));
        continue;
      }
      add(path, index, winner_.empty() ? Message() : message("shadowed by {}", winner_));
      found_.back().shadowed = !winner_.empty();
      if (winner_.empty()) winner_ = path;
    }
    for (const char* suffix : {".py", ".pyc"})
      if (winner_.empty() && holds(entries, name_.leaf + suffix))
        winner_ = folder + "/" + name_.leaf + suffix;
    for (const DirEntry& entry : entries) {
      if (!is_module_file_name(entry.name, name_.leaf) || fitting.contains(entry.name)) continue;
      const std::string suffix = entry.name.substr(name_.leaf.size());
      add(folder + "/" + entry.name, index, message("suffix {} is not one of this Python's", suffix));
    }
  }

  // A dangling link: its name is listed, but the file is not there.
  bool leads_nowhere(const std::string& path) const {
    const auto file = host_.stat(path);
    return !file && file.error().code == Errc::NotFound && host_.readlink(path);
  }

  // A folder of that name is the module only where it has an __init__; else import goes on.
  void visit_package(const std::string& folder) {
    if (!winner_.empty() || !host_.is_directory(folder)) return;
    const std::vector<DirEntry>& entries = listings_.of(folder);
    std::vector<std::string> suffixes = so_far_.python.value.extension_suffixes;
    suffixes.insert(suffixes.end(), {".py", ".pyc"});
    for (const std::string& suffix : suffixes)
      if (winner_.empty() && holds(entries, "__init__" + suffix)) winner_ = folder + "/__init__" + suffix;
  }

  // setuptools/command/editable_wheel.py: for the name itself __init__.py, then source, bytecode and
  // extensions beside it; below it, a folder like those of sys.path.
  void visit_mapping(const EditableMapping& mapping) {
    if (module_.starts_with(mapping.package + ".")) {
      std::string below = module_.substr(mapping.package.size());
      std::ranges::replace(below, '.', '/');
      visit(path_dirname(mapping.folder + below), -1);
      return;
    }
    if (module_ != mapping.package) return;
    for (const char* suffix : {"/__init__.py", ".py", ".pyc"})
      if (winner_.empty() && host_.exists(mapping.folder + suffix)) winner_ = mapping.folder + suffix;
    for (const std::string& suffix : so_far_.python.value.extension_suffixes) {
      if (!host_.exists(mapping.folder + suffix)) continue;
      add(mapping.folder + suffix, -1, winner_.empty() ? Message() : message("shadowed by {}", winner_));
      found_.back().shadowed = !winner_.empty();
      if (winner_.empty()) winner_ = mapping.folder + suffix;
    }
  }

  // Places where a build leaves files that import never sees.
  void visit_eggs(const std::string& site) {
    for (const DirEntry& entry : listings_.of(site))
      if (entry.name.ends_with(".egg") && entry.kind != FileKind::Regular)
        visit_stray(site + "/" + entry.name, message("in an egg that is not on sys.path"), "");
  }

  void visit_project(const Distribution& distribution) {
    if (!distribution.editable || distribution.project.empty()) return;
    const Message why = message("in a source directory that is not on sys.path");
    visit_stray(distribution.project, why, distribution.name);
    const std::string build = distribution.project + "/build";
    for (const DirEntry& entry : listings_.of(build))
      if (entry.name.starts_with("lib")) visit_stray(build + "/" + entry.name, why, distribution.name);
  }

  // Files that look like the module in a directory that is not on sys.path. None of them can be selected.
  void visit_stray(const std::string& folder, const Message& why, const std::string& distribution) {
    const std::string place = folder + name_.parents;
    for (const auto& entry : so_far_.python.value.sys_path)
      if (entry.path == folder) return;
    for (const DirEntry& entry : listings_.of(place)) {
      const auto is_this = [&](const Extension& copy) { return copy.path == place + "/" + entry.name; };
      if (!is_module_file_name(entry.name, name_.leaf) || std::ranges::any_of(found_, is_this)) continue;
      add(place + "/" + entry.name, -1, why);
      found_.back().distribution = distribution;
    }
  }

  void add(const std::string& path, int index, const Message& why_not) {
    Extension copy;
    copy.module = module_;
    copy.path = path;
    copy.sys_path_index = index;
    copy.selected = why_not.empty();
    copy.why_not_selected = why_not;
    // Between "leaf." and ".so": nothing where the name is plain "leaf.so".
    const std::string middle = path_basename(path).substr(name_.leaf.size());
    const auto last = middle.rfind('.');
    if (last > 0 && last != std::string::npos) copy.tag = middle.substr(1, last - 1);
    found_.push_back(std::move(copy));
  }

  const Host& host_;
  const Snapshot& so_far_;
  const std::string module_;
  const ModuleName name_;
  FolderListings& listings_;
  std::string winner_;  // the file that import takes; "" until one is found
  std::vector<Extension> found_;
};

// The installed distribution whose RECORD lists the file.
// Files in RECORD are named relative to the site folder.
std::string owner_of_file(const Host& host, const Snapshot& so_far, const std::string& path) {
  constexpr std::size_t kRecordLimit = 1u << 20;  // torch's is longer, and holds none of the modules
  for (const Distribution& d : so_far.distributions.value) {
    const std::string site = path_dirname(d.path) + "/";
    if (!path.starts_with(site)) continue;
    const auto record = host.read_file(path_join(d.path, "RECORD"), kRecordLimit);
    if (!record) continue;
    const std::string line = path.substr(site.size()) + ",";
    if (record->starts_with(line) || record->find("\n" + line) != std::string::npos) return d.name;
  }
  // What an editable install builds lies in its project, and no RECORD lists it.
  for (const Distribution& d : so_far.distributions.value)
    if (d.editable && !d.project.empty() && path.starts_with(d.project + "/")) return d.name;
  return "";
}

}  // namespace

const std::vector<DirEntry>& FolderListings::of(const std::string& folder) {
  const auto known = known_.find(folder);
  if (known != known_.end()) return known->second;
  auto entries = host_->list(folder);
  if (!entries && entries.error().code != Errc::NotFound) unreadable_.push_back(entries.error().message);
  return known_.emplace(folder, entries ? *std::move(entries) : std::vector<DirEntry>()).first->second;
}

std::vector<Extension> find_copies(const Host& host, const Snapshot& so_far, const std::string& module,
                                   FolderListings& listings) {
  std::vector<Extension> copies = ModuleSearch(host, so_far, module, listings).run();
  for (Extension& copy : copies)
    if (copy.distribution.empty()) copy.distribution = owner_of_file(host, so_far, copy.path);
  return copies;
}

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

}  // namespace scankit::probes

// SPDX-License-Identifier: Apache-2.0
// Python makes names at run time, so a file can only prove that a name is missing where nothing in it could
// make one. Every sign of that turns "no" into "unknown": a false "no" would accuse a working package.
#include <algorithm>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/probes/packages/packages.h"
#include "doctor/probes/python/python_text.h"
#include "doctor/probes/python/sys_path.h"

namespace scankit::probes {
namespace {

// Bounds of one search: transformers/generation has 20 files and 1.2 MB, all of transformers 4000 files and
// 60 MB.
constexpr unsigned kMostNameFiles = 1500;
constexpr std::uint64_t kLongestNameFile = 4u << 20, kMostNameBytes = 24u << 20;
constexpr std::size_t kMostFolders = 200;

// Names that a module may offer without writing them down itself.
bool makes_names(std::string_view text) {
  return std::ranges::any_of(
      std::initializer_list<std::string_view>{"import *", "__getattr__", "globals()", "sys.modules", "exec(",
                                              "setattr(", "__path__", "lazy", "_LazyModule", "importlib",
                                              "__dict__"},
      [&](std::string_view sign) { return text.find(sign) != std::string_view::npos; });
}

// `from x import *`, where x is neither this folder nor below it.
bool takes_all_from_elsewhere(std::string_view text) {
  for (const std::string_view line : lines_of(text)) {
    const std::string_view code = trimmed(line);
    if (!code.starts_with("from ") || code.find("import *") == std::string_view::npos) continue;
    if (code.starts_with("from ..") || !code.starts_with("from .")) return true;
  }
  return false;
}

}  // namespace

bool has_word(std::string_view text, std::string_view word) {
  const auto part = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  for (auto at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const auto end = at + word.size();
    if ((at == 0 || !part(text[at - 1])) && (end == text.size() || !part(text[end]))) return true;
  }
  return false;
}

// NAME.py, NAME/, or a compiled NAME.SUFFIX.so.
bool NameSearch::has_child(const std::string& folder, const std::string& name) const {
  const auto entries = host_.list(folder);
  return entries && std::ranges::any_of(*entries, [&](const DirEntry& entry) {
           return entry.name == name || entry.name == name + ".py" || entry.name == name + ".pyc" ||
                  (entry.name.starts_with(name + ".") && entry.name.ends_with(".so"));
         });
}

// Walks TARGET's parts below the folder of its top-level package. Sets `file` where the module's own text can
// be read, and `folder` where it is a package.
NameOffer NameSearch::find_target(const std::string& target, const std::string& top, std::string& file,
                                  std::string& folder) {
  const auto found = find_python_module(host_, python_, top);
  if (!found) return {"absent", message("no package {} is on this Python's path", top), ""};
  const std::string at = found->path;
  if (!found->package) {
    if (found->leftover) return {"unknown", message("{} is a directory without __init__.py", at), at};
    if (!at.ends_with(".py")) return {"unknown", message("{} is a compiled module", at), at};
    file = at;
    if (target != top) return {"unknown", message("{} is a single file", at), at};
    return {"yes", "", at};
  }
  folder = at;
  file = path_join(at, "__init__.py");
  for (std::size_t from = top.size() + 1; from < target.size() + 1;) {
    const auto end = std::min(target.find('.', from), target.size());
    const std::string part = target.substr(from, end - from);
    from = end + 1;
    const auto text = host_.read_file(file, kLongestNameFile);
    if (folder.empty()) return {"unknown", message("{} is a single file", file), at};
    const std::string deeper = path_join(folder, part);
    if (host_.is_directory(deeper)) {
      folder = deeper;
      file = path_join(deeper, "__init__.py");
    } else if (is_regular_file(host_, deeper + ".py")) {
      file = deeper + ".py";
      folder.clear();
    } else if (has_child(folder, part)) {
      return {"unknown", message("{} is a compiled module", deeper), at};
    } else if (!text) {
      return {"unknown", message("{} could not be read", file), at};
    } else if (has_word(*text, part) || text->find("__path__") != std::string::npos) {
      return {"unknown", message("{} may create the module {} itself", file, part), at};
    } else {
      return {"no", message("{}.py does not exist", deeper), at};
    }
  }
  return {"yes", "", at};
}

// All files below the package, for a module that gathers names from them: one that has the word is enough
// for "yes". "unknown" at the first file that cannot be judged, or when a bound is met.
NameOffer NameSearch::search_folder(const std::string& folder, const std::string& name,
                                    const std::string& where) {
  std::vector<std::string> folders{folder};
  unsigned files = 0;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < folders.size(); ++i) {
    const auto entries = host_.list(folders[i]);
    if (!entries) return {"unknown", message("{} could not be listed", folders[i]), where};
    for (const DirEntry& entry : *entries) {
      const std::string path = path_join(folders[i], entry.name);
      if (entry.kind == FileKind::Directory && entry.name != "__pycache__") folders.push_back(path);
      if (entry.name.find(".so") != std::string::npos)
        return {"unknown", message("{} may define it", path), where};
      if (!entry.name.ends_with(".py") || entry.kind == FileKind::Directory) continue;
      const auto text = host_.read_file(path, kLongestNameFile);
      if (!text) return {"unknown", message("{} could not be read", path), where};
      bytes += text->size();
      if (++files > kMostNameFiles || bytes > kMostNameBytes || folders.size() > kMostFolders)
        return {"unknown", message("{} is too large to search", folder), where};
      if (has_word(*text, name)) return {"yes", "", where};
      if (takes_all_from_elsewhere(*text))
        return {"unknown", message("{} imports all names of another module", path), where};
    }
  }
  return {"no", message("no file below {} defines the name {}", folder, name), where};
}

// Best evidence first: the word in the module's own file, a submodule of that name, then the files below, if
// the module makes names.
NameOffer NameSearch::ask(const std::string& target, const std::string& name) {
  const std::string key = target + ":" + name;
  if (const auto old = known_.find(key); old != known_.end()) return old->second;
  std::string file, folder;
  NameOffer offer = find_target(target, target.substr(0, target.find('.')), file, folder);
  if (offer.answer == "yes" && !name.empty() && name != "*") {
    const auto text = host_.read_file(file, kLongestNameFile);
    const std::string where = offer.package_path;
    // A namespace package (PEP 420) offers its submodules. Whether another portion of it offers the name
    // is unknown.
    if (!text && !folder.empty() && !host_.exists(file))
      offer = has_child(folder, name) ? offer
                                      : NameOffer{"unknown", message("{} has no __init__.py", folder), where};
    else if (!text)
      offer = {"unknown", message("{} could not be read", file), where};
    else if (!has_word(*text, name) && (folder.empty() || !has_child(folder, name))) {
      if (!makes_names(*text))
        offer = {"no", message("{} does not define the name {}", file, name), where};
      else if (folder.empty() || takes_all_from_elsewhere(*text))
        offer = {"unknown", message("{} imports names from other modules", file), where};
      else
        offer = search_folder(folder, name, where);
    }
  }
  return known_[key] = offer;
}

}  // namespace scankit::probes

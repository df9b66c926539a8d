// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/imports/importers.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <set>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/knowledge/known_packages.h"
#include "doctor/probes/packages/packages.h"
#include "doctor/probes/python/python_text.h"
#include "doctor/probes/python/sys_path.h"

namespace scankit::probes {
namespace {

// `import transformers` runs 60 of its 4000 files, `import torch` some 500.
constexpr unsigned kMostImportFiles = 800;
constexpr std::uint64_t kLongestImportFile = 1u << 20, kMostImportBytes = 16u << 20;

// One walk over the imports of a package, breadth first. Only files are read; compiled modules and packages
// outside root and `through` end a path.
class ImportWalk {
 public:
  ImportWalk(const Host& host, const Python& python, const std::set<std::string>& wanted,
             const std::set<std::string>& through)
      : host_(host), python_(python), wanted_(wanted), through_(through) {}

  std::map<std::string, ImportPlace> from(const std::string& root) {
    root_ = root;
    add(root);
    while (!queue_.empty() && files_ < kMostImportFiles && bytes_ < kMostImportBytes &&
           found_.size() < wanted_.size()) {
      const std::string module = queue_.front();
      queue_.pop_front();
      read(module);
    }
    return std::move(found_);
  }

 private:
  void add(const std::string& module) {
    if (seen_.insert(module).second) queue_.push_back(module);
  }

  // The folder or file of a top-level package, asked once.
  const std::optional<FoundModule>& home(const std::string& top) {
    auto known = homes_.find(top);
    if (known == homes_.end()) known = homes_.emplace(top, find_python_module(host_, python_, top)).first;
    return known->second;
  }

  // The file of a dotted module: a package's __init__.py, or NAME.py beside it.
  void read(const std::string& module) {
    const auto& found = home(top_package(module));
    if (!found || found->leftover) return;
    std::string path = found->path;
    for (auto dot = module.find('.'); found->package && dot != std::string::npos;) {
      const auto next = module.find('.', dot + 1);
      path = path_join(path, module.substr(dot + 1, next == std::string::npos ? next : next - dot - 1));
      dot = next;
    }
    if (!found->package) return read_file(path, module, false);
    const std::string package = path_join(path, "__init__.py");
    if (is_regular_file(host_, package)) return read_file(package, module, true);
    read_file(path + ".py", module, false);
  }

  // An import counts only where nothing guards it: two scanners are asked, since scan_package_file() knows
  // conditions and functions, and scan_imports() knows `except`.
  void read_file(const std::string& path, const std::string& module, bool package) {
    const auto text = path.ends_with(".py") ? host_.read_file(path, kLongestImportFile)
                                            : Result<std::string>(std::string());
    if (!text || text->empty()) return;
    ++files_;
    bytes_ += text->size();
    const PackageScan scan = scan_package_file(*text, module, package);
    std::set<std::string> spelled;
    for (const ScannedImport& import : scan.imports)
      spelled.insert(import.written.starts_with('.') ? import.written : top_package(import.target));
    std::set<unsigned> guarded;
    for (const ImportLine& line : scan_imports(*text, {spelled.begin(), spelled.end()}))
      if (!line.caught.empty() || line.in_function) guarded.insert(line.line);
    for (const ScannedImport& import : scan.imports)
      if (import.when == "import" && !guarded.contains(import.line)) take(import, path);
  }

  void take(const ScannedImport& import, const std::string& path) {
    const std::string top = top_package(import.target);
    if (wanted_.contains(top)) {
      found_.emplace(top, ImportPlace{path, import.line});
      return;
    }
    if (top != root_ && !through_.contains(top)) return;
    // `import a.b.c` runs a, a.b and a.b.c; `from a import b` may run a.b.
    for (auto dot = import.target.find('.'); dot != std::string::npos; dot = import.target.find('.', dot + 1))
      add(import.target.substr(0, dot));
    add(import.target);
    if (!import.name.empty() && import.name != "*") add(import.target + "." + import.name);
  }

  const Host& host_;
  const Python& python_;
  const std::set<std::string>&wanted_, &through_;
  std::string root_;
  std::deque<std::string> queue_;
  std::set<std::string> seen_;
  std::map<std::string, std::optional<FoundModule>> homes_;
  std::map<std::string, ImportPlace> found_;
  unsigned files_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace

std::map<std::string, ImportPlace> hard_imports(const Host& host, const Python& python,
                                                const std::string& root, const std::set<std::string>& wanted,
                                                const std::set<std::string>& through) {
  return ImportWalk(host, python, wanted, through).from(root);
}

namespace {

// Bounds of one diagnosis, far above what the known packages need (mamba_ssm 2.3: 90 files, 0.9 MB).
constexpr unsigned kMostImporterFiles = 1500, kMostPrograms = 400;
constexpr std::uint64_t kLongestImporter = 1u << 20, kMostImporterBytes = 24u << 20;
constexpr int kDeepestImporter = 8;

struct Owner {
  std::string name, version;
};  // of a top-level package: its distribution

// Looks for the importers in four places: known packages, packages that bring a module under diagnosis,
// single-file modules, and the current directory. Each file is read once.
class ImporterSearch {
 public:
  ImporterSearch(const Host& host, const Python& python, const std::vector<std::string>& modules)
      : host_(host), python_(python), modules_(modules) {}

  std::vector<Importer> run() {
    read_owners();
    for (const std::string& package : knowledge::known_importers().packages) wanted_.insert(package);
    for (const std::string& package : wanted_) scan_package(package);
    for (const PathEntry& entry : python_.sys_path) {
      const bool ours = entry.origin == "stdlib" || entry.origin == "lib-dynload";
      if (entry.exists && !ours) scan_single_files(entry.path);
      if (entry.exists && entry.origin == "cwd")
        for (const std::string& folder : knowledge::known_importers().source_folders)
          scan_folder(path_join(entry.path, folder), {path_basename(folder), ""}, 0);
    }
    return std::move(found_);
  }

  unsigned files() const { return files_; }
  bool exhausted() const { return files_ >= kMostImporterFiles || bytes_ >= kMostImporterBytes; }

 private:
  // top_level.txt names the packages of a distribution. One that brings a module under diagnosis is likely to
  // import it.
  void read_owners() {
    for (const PathEntry& entry : python_.sys_path) {
      if (!entry.exists || entry.origin == "cwd" || entry.origin == "stdlib" || entry.origin == "lib-dynload")
        continue;
      const auto entries = host_.list(entry.path);
      if (!entries) continue;
      for (const DirEntry& each : *entries)
        if (each.kind == FileKind::Directory &&
            (each.name.ends_with(".dist-info") || each.name.ends_with(".egg-info")))
          read_owner(path_join(entry.path, each.name), each.name);
    }
  }

  // "NAME-VERSION.dist-info" and "NAME-VERSION-pyX.Y.egg-info". A distribution without top_level.txt is
  // taken for a package of its own name.
  void read_owner(const std::string& folder, const std::string& name) {
    const std::string stem = name.substr(0, name.rfind('.'));
    const auto dash = stem.find('-');
    Owner owner{stem.substr(0, dash), dash == std::string::npos ? "" : stem.substr(dash + 1)};
    owner.version = owner.version.substr(0, owner.version.find("-py"));
    std::vector<std::string> tops{owner.name};
    if (const auto text = read_head(host_, path_join(folder, "top_level.txt"), 1u << 16))
      for (const std::string_view line : lines_of(*text))
        if (const auto top = trimmed(line); !top.empty()) tops.emplace_back(top);
    const bool brings = std::ranges::any_of(
        modules_, [&](const std::string& module) { return std::ranges::find(tops, module) != tops.end(); });
    for (const std::string& top : tops) {
      owners_.emplace(top, owner);
      if (brings && top.find('/') == std::string::npos) wanted_.insert(top);
    }
  }

  Owner owner_of(const std::string& package) const {
    const auto owner = owners_.find(package);
    return owner == owners_.end() ? Owner{package, ""} : Owner{package, owner->second.version};
  }

  void scan_package(const std::string& package) {
    const auto found = find_python_module(host_, python_, package);
    if (!found) return;
    if (found->package || found->leftover)
      scan_folder(found->path, owner_of(package), 0);
    else if (found->path.ends_with(".py"))
      scan_file(found->path, owner_of(package));
  }

  void scan_single_files(const std::string& folder) {
    const auto entries = host_.list(folder);
    if (!entries) return;
    for (const DirEntry& entry : *entries) {
      if (!entry.name.ends_with(".py") || entry.kind == FileKind::Directory || entry.name == "setup.py")
        continue;
      scan_file(path_join(folder, entry.name), owner_of(entry.name.substr(0, entry.name.size() - 3)));
    }
  }

  // Hidden directories and __pycache__ are passed over, and links to directories are not followed.
  void scan_folder(const std::string& folder, const Owner& owner, int depth) {
    const auto entries = depth < kDeepestImporter ? host_.list(folder)
                                                  : Result<std::vector<DirEntry>>(std::vector<DirEntry>());
    if (!entries) return;
    for (const DirEntry& entry : *entries) {
      const std::string path = path_join(folder, entry.name);
      if (entry.kind == FileKind::Directory && entry.name != "__pycache__" && !entry.name.starts_with('.'))
        scan_folder(path, owner, depth + 1);
      else if (entry.kind != FileKind::Directory && entry.name.ends_with(".py"))
        scan_file(path, owner);
    }
  }

  void scan_file(const std::string& path, const Owner& owner) {
    if (exhausted() || !seen_.insert(path).second) return;
    const auto text = host_.read_file(path, kLongestImporter);
    if (!text) return;
    ++files_;
    bytes_ += text->size();
    for (const ImportLine& line : scan_imports(*text, modules_))
      found_.push_back(Importer{owner.name, owner.version, path, line.line, line.module, line.caught,
                                !line.caught.empty(), line.masked_value, line.in_function,
                                nothing_brings_torch(path, *text, line.line)});
  }

  // Whether the lines before that one import Python's own modules alone, and packages that are known not to
  // import torch. A file inside a package runs after others of it, of which this does not know: no.
  bool nothing_brings_torch(const std::string& path, const std::string& text, unsigned before) {
    const bool inside = is_regular_file(host_, path_join(path_dirname(path), "__init__.py"));
    const bool package = path.ends_with("/__init__.py");
    const std::string folder = path_dirname(path);
    const bool top = !is_regular_file(host_, path_join(path_dirname(folder), "__init__.py"));
    if (inside && !(package && top)) return false;
    const std::string name = package ? path_basename(folder) : path_basename(path.substr(0, path.size() - 3));
    const PackageScan scan = scan_package_file(text, name, package);
    return std::ranges::none_of(scan.imports, [&](const ScannedImport& import) {
      return import.line < before && import.when != "call" && may_bring_torch(import.target, name);
    });
  }

  // An installed package that is not on the list counts as one that may import torch: a wrong "no" would
  // blame the importer.
  bool may_bring_torch(const std::string& target, const std::string& own) {
    constexpr std::array<std::string_view, 8> kInnocent{"numpy", "scipy",  "pandas", "matplotlib",
                                                        "tqdm",  "einops", "yaml",   "PIL"};
    const std::string top = target.substr(0, target.find('.'));
    if (top == "torch" || top == own) return true;
    if (std::ranges::find(kInnocent, top) != kInnocent.end()) return false;
    const auto found = find_python_module(host_, python_, top);
    if (!found) return false;  // built in, or what would end the program itself
    if (found->sys_path_index < 0) return true;
    const std::string& origin = python_.sys_path[static_cast<std::size_t>(found->sys_path_index)].origin;
    return origin != "stdlib" && origin != "lib-dynload";
  }

  const Host& host_;
  const Python& python_;
  const std::vector<std::string>& modules_;
  std::map<std::string, Owner> owners_;
  std::set<std::string> wanted_, seen_;
  std::vector<Importer> found_;
  unsigned files_ = 0;
  std::uint64_t bytes_ = 0;
};

// The packages that scankit knows how to install, as far as import would not find them.
std::vector<std::string> absent_packages(const Host& host, const Python& python) {
  std::vector<std::string> absent;
  for (const char* package : {"mamba_ssm", "causal_conv1d"})
    if (!find_python_module(host, python, package)) absent.emplace_back(package);
  return absent;
}

}  // namespace

Probed<std::vector<Importer>> probe_package_importers(const Host& host, const Python& python) {
  using Found = Probed<std::vector<Importer>>;
  const auto unreadable = unreadable_site_folders(host, python);
  if (!unreadable.empty()) return Found::failed(unreadable.front());
  const std::vector<std::string> absent = absent_packages(host, python);
  std::vector<Importer> found;
  unsigned files = 0;
  std::set<std::string> seen;
  // Nothing is read where both packages are installed.
  for (const PathEntry& entry : python.sys_path) {
    if (!entry.exists || (entry.origin != "cwd" && entry.origin != "pythonpath") || absent.empty()) continue;
    const auto entries = host.list(entry.path);
    if (!entries) continue;
    for (const DirEntry& each : *entries) {
      const std::string path = path_join(entry.path, each.name);
      if (!each.name.ends_with(".py") || each.kind == FileKind::Directory || each.name == "setup.py" ||
          !seen.insert(path).second || ++files > kMostPrograms)
        continue;
      const auto text = host.read_file(path, kLongestImporter);
      if (!text) continue;
      for (const ImportLine& line : scan_imports(*text, absent))
        found.push_back({each.name.substr(0, each.name.size() - 3), "", path, line.line, line.module,
                         line.caught, !line.caught.empty(), line.masked_value, line.in_function, false});
    }
  }
  return Found::of(std::move(found));
}

Probed<std::vector<Importer>> probe_importers(const Host& host, const Python& python,
                                              const std::vector<std::string>& modules) {
  ImporterSearch search(host, python, modules);
  std::vector<Importer> found = search.run();
  const Message read = message(
      "{} files of known packages, single-file modules and the current directory were read", search.files());
  const Message partly = message("{}; the limit was reached, so there may be more", read);
  // Which of the three answers: found; not decided, because something could not be read or the limit was
  // reached; or a real absence.
  if (!found.empty()) {
    auto probed = Probed<std::vector<Importer>>::of(std::move(found));
    if (search.exhausted()) probed.note = partly;
    return probed;
  }
  const auto unreadable = unreadable_site_folders(host, python);
  if (!unreadable.empty()) return Probed<std::vector<Importer>>::failed(unreadable.front());
  if (search.exhausted()) return Probed<std::vector<Importer>>::failed(partly);
  return Probed<std::vector<Importer>>::absent(message("none of the modules is imported there: {}", read));
}

}  // namespace scankit::probes

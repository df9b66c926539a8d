// SPDX-License-Identifier: Apache-2.0
// probe_packages(): finds the packages around the modules, scans their files (packages_scan.h), follows from
// __init__.py which files an import of the package runs, and asks for each import whether the installed
// files offer it (packages_names.h). packages_install.h adds how the modules and torch were installed.
#include "doctor/probes/packages/packages.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "doctor/base/files.h"
#include "doctor/base/text.h"
#include "doctor/knowledge/importers.h"
#include "doctor/probes/imports/importers_scan.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/probes/packages/packages_install.h"
#include "doctor/probes/packages/packages_names.h"
#include "doctor/probes/packages/packages_scan.h"
#include "doctor/probes/python/python_text.h"
#include "doctor/probes/python/sys_path.h"

namespace scankit {
namespace {

// Bounds of one diagnosis; mamba_ssm 2.3 has 90 files and 0.9 MB.
constexpr unsigned kMostPackageFiles = 1000;
constexpr std::uint64_t kLongestPackageFile = 1u << 20, kMostPackageBytes = 16u << 20;
constexpr std::size_t kMostFacts = 500;
constexpr int kDeepestPackage = 8;

// One scanned file. `reached`: `import PACKAGE` runs it, without a guard on the way. `loaded`: guarded
// imports count too. Both stay false for a file that is imported later or never.
struct Source {
  std::string package, version, file, module;
  bool reached = false, loaded = false;
  PackageScan scan;
  std::map<unsigned, ImportLine> guards;  // by line
};

class PackageSearch {
 public:
  PackageSearch(const Host& host, const Snapshot& snapshot)
      : host_(host), snapshot_(snapshot), python_(snapshot.python.value), names_(host, python_) {
    // Packages whose names are worth a question when another of them imports or calls them.
    siblings_ = {"transformers", "triton"};
    for (const std::string& package : known_importers().packages) siblings_.insert(package);
  }

  Packages run() {
    for (const std::string& package : known_importers().packages)
      if (const auto found = find_python_module(host_, python_, package); found && found->package)
        read_package(*found, package);
    for (const Importer& importer : snapshot_.importers.value) read_importer(importer);
    for (const std::string& package : packages_) {
      follow(package, true);
      follow(package, false);
    }
    for (const Source& source : sources_) take(source);
    define_callees();
    read_installation(host_, snapshot_, packages_found_);
    return std::move(packages_found_);
  }

  bool any() const { return !sources_.empty(); }

 private:
  // The release of the files that import takes: another copy than the installed one says its own, or nothing.
  std::string version_of(const std::string& package) const {
    const auto known = versions_.find(package);
    if (known != versions_.end()) return known->second;
    const Distribution* owner = find_distribution(snapshot_.distributions.value, package);
    return owner == nullptr ? "" : owner->version;
  }
  std::string release_of(const std::string& folder, const std::string& package) const {
    const Distribution* owner = find_distribution(snapshot_.distributions.value, package);
    const std::string beside = path_dirname(folder);
    if (owner != nullptr &&
        (path_dirname(owner->path) == beside || (owner->editable && owner->project == beside)))
      return owner->version;
    const auto text = read_head(host_, path_join(folder, "__init__.py"), 1u << 16);
    if (!text) return {};
    for (const std::string_view line : lines_of(*text)) {
      const auto equals = line.find('=');
      if (!line.starts_with("__version__") || equals == std::string_view::npos) continue;
      auto value = line.find_first_not_of(' ', equals + 1);
      if (value != std::string_view::npos) return python_string_literal(line, value).value_or("");
    }
    return {};
  }

  // The folder that holds the whole package: up while there is an __init__.py. One that `import` does not
  // take (a checkout inside the current folder, a copy behind another) is nobody's way.
  void read_importer(const Importer& importer) {
    std::string folder = path_dirname(importer.file), root;
    while (is_regular_file(host_, path_join(folder, "__init__.py")) && path_dirname(folder) != folder) {
      root = folder;
      folder = path_dirname(folder);
    }
    if (root.empty())
      read_file(importer.file, importer.package,
                path_basename(importer.file.substr(0, importer.file.rfind('.'))));
    else if (const auto found = find_python_module(host_, python_, path_basename(root));
             found && found->package && found->path == root)
      read_package(*found, path_basename(root));
  }

  void read_package(const FoundModule& found, const std::string& package) {
    const std::string& folder = found.path;
    if (!folders_.insert(folder).second) return;
    packages_.insert(package);
    versions_[package] = release_of(folder, package);
    const bool here = found.sys_path_index >= 0 &&
                      python_.sys_path[static_cast<std::size_t>(found.sys_path_index)].origin == "cwd";
    packages_found_.found.push_back({package, versions_[package], folder, here});
    siblings_.insert(package);
    read_folder(folder, package, package, 0);
  }

  void read_folder(const std::string& folder, const std::string& package, const std::string& module,
                   int depth) {
    const auto entries =
        depth < kDeepestPackage ? host_.list(folder) : Result<std::vector<DirEntry>>(std::vector<DirEntry>());
    if (!entries) return;
    for (const DirEntry& entry : *entries) {
      const std::string path = path_join(folder, entry.name);
      if (entry.kind == FileKind::Directory && entry.name != "__pycache__" && !entry.name.starts_with('.'))
        read_folder(path, package, module + "." + entry.name, depth + 1);
      else if (entry.kind != FileKind::Directory && entry.name == "__init__.py")
        read_file(path, package, module);
      else if (entry.kind != FileKind::Directory && entry.name.ends_with(".py"))
        read_file(path, package, module + "." + entry.name.substr(0, entry.name.size() - 3));
    }
  }

  void read_file(const std::string& path, const std::string& package, const std::string& module) {
    if (files_ >= kMostPackageFiles || bytes_ >= kMostPackageBytes || !seen_.insert(path).second) return;
    const auto text = host_.read_file(path, kLongestPackageFile);
    if (!text) return;
    ++files_;
    bytes_ += text->size();
    Source source{package, version_of(package), path, module, false, false, {}, {}};
    source.scan = scan_package_file(*text, module, path.ends_with("/__init__.py"));
    // scan_imports() knows the guards (`except ImportError`), which the token scan does not follow. It wants
    // the modules as they are spelt in the file, so relative imports are asked for by their dots.
    std::set<std::string> tops;
    for (const ScannedImport& import : source.scan.imports)
      tops.insert(import.written.starts_with('.') ? import.written : top_package(import.target));
    for (ImportLine& line : scan_imports(*text, {tops.begin(), tops.end()})) {
      const unsigned at = line.line;
      source.guards.emplace(at, std::move(line));
    }
    by_module_[module] = sources_.size();
    sources_.push_back(std::move(source));
  }

  static bool guarded(const Source& source, const ScannedImport& import) {
    const auto guard = source.guards.find(import.line);
    return guard != source.guards.end() && !guard->second.caught.empty();
  }

  // What `import PACKAGE` runs: __init__ and everything that it imports without a condition; all of it for
  // sure only where no guard stands on the way.
  void follow(const std::string& module, bool sure) {
    const auto found = by_module_.find(module);
    if (found == by_module_.end()) return;
    bool& seen = sure ? sources_[found->second].reached : sources_[found->second].loaded;
    if (seen) return;
    seen = true;
    // `import a.b.c` runs the __init__ of a and of a.b as well; `from a import b` may mean the module a.b.
    const auto imports = sources_[found->second].scan.imports;
    for (const ScannedImport& import : imports) {
      if (import.when != "import" || (sure && guarded(sources_[found->second], import))) continue;
      if (top_package(import.target) != top_package(module)) continue;
      for (auto dot = import.target.find('.'); dot != std::string::npos;
           dot = import.target.find('.', dot + 1))
        follow(import.target.substr(0, dot), sure);
      follow(import.target, sure);
      if (!import.name.empty()) follow(import.target + "." + import.name, sure);
    }
  }

  // A name of a sibling package or of a module under diagnosis, seen from another package: what a package
  // takes from itself always fits.
  bool concerns_us(const std::string& dotted, const std::string& own_package) const {
    const std::string top = top_package(dotted);
    return top != own_package && (siblings_.contains(top) || is_module(dotted));
  }
  bool is_module(const std::string& dotted) const {
    return std::ranges::any_of(snapshot_.modules, [&](const std::string& module) {
      return dotted == module || dotted.starts_with(module + ".");
    });
  }

  void take(const Source& source) {
    for (const ScannedCall& call : source.scan.calls)
      if (concerns_us(call.callee, source.package) && packages_found_.calls.size() < kMostFacts)
        packages_found_.calls.push_back(
            {source.package, source.version, source.file, call.line, call.callee, call.arguments});
    for (const ScannedImport& import : source.scan.imports)
      if (concerns_us(import.target, source.package) && packages_found_.imports.size() < kMostFacts)
        take_import(source, import);
    for (const ScannedUse& use : source.scan.uses)
      if (top_package(use.name) == "triton" && packages_found_.imports.size() < kMostFacts)
        take_use(source, use);
  }

  // The part of a dotted name that is one more than a module: `triton.language.math.log1p` asks the module
  // triton.language.math for log1p.
  void take_use(const Source& source, const ScannedUse& use) {
    auto dot = use.name.find('.');
    for (auto next = dot; next != std::string::npos; dot = next) {
      next = use.name.find('.', dot + 1);
      if (next == std::string::npos || !names_.is_module(use.name.substr(0, next))) break;
    }
    if (dot == std::string::npos) return;
    const std::string target = use.name.substr(0, dot);
    const std::string name = use.name.substr(dot + 1, use.name.find('.', dot + 1) - dot - 1);
    ScannedImport import{use.line, target, name, "", "use", "", use.line};
    if (names_.ask(target, name).answer != "yes") take_import(source, import);
  }

  // A module under diagnosis is answered "module": what it offers is for its own facts to say, not for
  // NameSearch, which reads Python files.
  void take_import(const Source& source, const ScannedImport& import) {
    PackageImport taken{source.package,
                        source.version,
                        source.file,
                        import.line,
                        import.target,
                        import.name,
                        import.when,
                        source.reached,
                        source.loaded,
                        "",
                        "",
                        import.tested,
                        import.called_at,
                        "",
                        "",
                        "",
                        "",
                        ""};
    if (const auto guard = source.guards.find(import.line); guard != source.guards.end()) {
      taken.caught = guard->second.caught;
      taken.masked_value = guard->second.masked_value;
    }
    taken.target_package = top_package(import.target);
    if (is_module(import.target)) {
      taken.offered = "module";
      packages_found_.imports.push_back(std::move(taken));
      return;
    }
    const NameOffer offer = names_.ask(import.target, import.name);
    taken.offered = offer.answer;
    taken.why = offer.why;
    taken.target_version = version_of(taken.target_package);
    taken.target_path = offer.package_path;
    packages_found_.imports.push_back(std::move(taken));
  }

  // Through re-exports: causal_conv1d/__init__.py takes its functions from another file.
  std::optional<PythonFunction> definition(const std::string& dotted, int depth) const {
    const auto dot = dotted.rfind('.');
    if (dot == std::string::npos || depth > 4) return std::nullopt;
    const auto found = by_module_.find(dotted.substr(0, dot));
    if (found == by_module_.end()) return std::nullopt;
    const Source& source = sources_[found->second];
    const std::string name = dotted.substr(dot + 1);
    std::optional<PythonFunction> defined;
    for (const ScannedFunction& function : source.scan.functions)
      if (function.name == name)
        defined = PythonFunction{dotted, source.file, function.line, function.least, function.most};
    for (const ScannedImport& import : source.scan.imports) {
      if (import.bound != name || import.name.empty()) continue;
      if (defined || import.when != "import") return std::nullopt;  // it depends on what runs
      defined = definition(import.target + "." + import.name, depth + 1);
      if (!defined) return std::nullopt;
      defined->name = dotted;
    }
    return defined;
  }

  // The definitions of what the packages call in each other, so that a check can compare argument counts.
  void define_callees() {
    std::set<std::string> asked;
    for (const PackageCall& call : packages_found_.calls)
      if (asked.insert(call.callee).second && !is_module(call.callee))
        if (auto function = definition(call.callee, 0))
          packages_found_.functions.push_back(*std::move(function));
  }

  const Host& host_;
  const Snapshot& snapshot_;
  const Python& python_;
  NameSearch names_;
  // siblings_ are asked for, packages_ were read; folders_ and seen_ are paths that were read.
  std::set<std::string> siblings_, packages_, folders_, seen_;
  std::vector<Source> sources_;
  // "mamba_ssm.ops" -> its place in sources_.
  std::map<std::string, std::size_t> by_module_;
  std::map<std::string, std::string> versions_;
  Packages packages_found_;
  unsigned files_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace

Probed<Packages> probe_packages(const Host& host, const Snapshot& so_far) {
  PackageSearch search(host, so_far);
  Packages found = search.run();
  if (search.any() || !found.texts.empty()) return Probed<Packages>::of(std::move(found));
  const auto unreadable = unreadable_site_folders(host, so_far.python.value);
  if (!unreadable.empty()) return Probed<Packages>::failed(unreadable.front());
  return Probed<Packages>::absent("no package that uses the modules is installed");
}

}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
// probe_packages(): finds the packages around the modules, scans their files (packages_scan.cc), follows from
// __init__.py which files an import of the package runs, and asks for each import whether the installed
// files offer it (packages_names.cc). package_records.cc adds what their records say, and how
// the modules and torch were installed.
#include "doctor/probes/packages/packages.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "doctor/base/files.h"
#include "doctor/base/text.h"
#include "doctor/knowledge/known_packages.h"
#include "doctor/probes/imports/importers.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/probes/python/python_text.h"
#include "doctor/probes/python/sys_path.h"

namespace scankit::probes {
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

// The files of the packages that were read, and what is to be known about them together.
struct PackageSources {
  std::vector<Source> sources;
  std::map<std::string, std::size_t> by_module;  // "mamba_ssm.ops" -> its place in `sources`
  std::vector<PackageFound> found;
  std::set<std::string> packages;               // that were read
  std::set<std::string> siblings;               // whose names are worth a question when another one uses them
  std::map<std::string, std::string> versions;  // of `packages`
  std::set<std::string> folders, seen;          // paths that were read
  unsigned files = 0;
  std::uint64_t bytes = 0;
};

// The release of the files that import takes: another copy than the installed one says its own, or nothing.
std::string version_of(const Snapshot& snapshot, const PackageSources& read, const std::string& package) {
  const auto known = read.versions.find(package);
  if (known != read.versions.end()) return known->second;
  const Distribution* owner = find_distribution(snapshot.distributions.value, package);
  return owner == nullptr ? "" : owner->version;
}

std::string release_of(const Host& host, const Snapshot& snapshot, const std::string& folder,
                       const std::string& package) {
  const Distribution* owner = find_distribution(snapshot.distributions.value, package);
  const std::string beside = path_dirname(folder);
  if (owner != nullptr &&
      (path_dirname(owner->path) == beside || (owner->editable && owner->project == beside)))
    return owner->version;
  const auto text = read_head(host, path_join(folder, "__init__.py"), 1u << 16);
  if (!text) return {};
  for (const std::string_view line : lines_of(*text)) {
    const auto equals = line.find('=');
    if (!line.starts_with("__version__") || equals == std::string_view::npos) continue;
    auto value = line.find_first_not_of(' ', equals + 1);
    if (value != std::string_view::npos) return python_string_literal(line, value).value_or("");
  }
  return {};
}

void read_file(const Host& host, const Snapshot& snapshot, const std::string& path,
               const std::string& package, const std::string& module, PackageSources& read) {
  if (read.files >= kMostPackageFiles || read.bytes >= kMostPackageBytes || !read.seen.insert(path).second)
    return;
  const auto text = host.read_file(path, kLongestPackageFile);
  if (!text) return;
  ++read.files;
  read.bytes += text->size();
  Source source{package, version_of(snapshot, read, package), path, module, false, false, {}, {}};
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
  read.by_module[module] = read.sources.size();
  read.sources.push_back(std::move(source));
}

void read_folder(const Host& host, const Snapshot& snapshot, const std::string& folder,
                 const std::string& package, const std::string& module, int depth, PackageSources& read) {
  const auto entries =
      depth < kDeepestPackage ? host.list(folder) : Result<std::vector<DirEntry>>(std::vector<DirEntry>());
  if (!entries) return;
  for (const DirEntry& entry : *entries) {
    const std::string path = path_join(folder, entry.name);
    if (entry.kind == FileKind::Directory && entry.name != "__pycache__" && !entry.name.starts_with('.'))
      read_folder(host, snapshot, path, package, module + "." + entry.name, depth + 1, read);
    else if (entry.kind != FileKind::Directory && entry.name == "__init__.py")
      read_file(host, snapshot, path, package, module, read);
    else if (entry.kind != FileKind::Directory && entry.name.ends_with(".py"))
      read_file(host, snapshot, path, package, module + "." + entry.name.substr(0, entry.name.size() - 3),
                read);
  }
}

void read_package(const Host& host, const Snapshot& snapshot, const FoundModule& found,
                  const std::string& package, PackageSources& read) {
  const std::string& folder = found.path;
  if (!read.folders.insert(folder).second) return;
  read.packages.insert(package);
  read.versions[package] = release_of(host, snapshot, folder, package);
  const bool here =
      found.sys_path_index >= 0 &&
      snapshot.python.value.sys_path[static_cast<std::size_t>(found.sys_path_index)].origin == "cwd";
  read.found.push_back({package, read.versions[package], folder, here});
  read.siblings.insert(package);
  read_folder(host, snapshot, folder, package, package, 0, read);
}

// The folder that holds the whole package: up while there is an __init__.py. One that `import` does not
// take (a checkout inside the current folder, a copy behind another) is nobody's way.
void read_importer(const Host& host, const Snapshot& snapshot, const Importer& importer,
                   PackageSources& read) {
  std::string folder = path_dirname(importer.file), root;
  while (is_regular_file(host, path_join(folder, "__init__.py")) && path_dirname(folder) != folder) {
    root = folder;
    folder = path_dirname(folder);
  }
  if (root.empty())
    read_file(host, snapshot, importer.file, importer.package,
              path_basename(importer.file.substr(0, importer.file.rfind('.'))), read);
  else if (const auto found = find_python_module(host, snapshot.python.value, path_basename(root));
           found && found->package && found->path == root)
    read_package(host, snapshot, *found, path_basename(root), read);
}

bool guarded(const Source& source, const ScannedImport& import) {
  const auto guard = source.guards.find(import.line);
  return guard != source.guards.end() && !guard->second.caught.empty();
}

// What `import PACKAGE` runs: __init__ and everything that it imports without a condition; all of it for
// sure only where no guard stands on the way.
void follow(const std::string& module, bool sure, PackageSources& read) {
  const auto found = read.by_module.find(module);
  if (found == read.by_module.end()) return;
  bool& seen = sure ? read.sources[found->second].reached : read.sources[found->second].loaded;
  if (seen) return;
  seen = true;
  // `import a.b.c` runs the __init__ of a and of a.b as well; `from a import b` may mean the module a.b.
  const auto imports = read.sources[found->second].scan.imports;
  for (const ScannedImport& import : imports) {
    if (import.when != "import" || (sure && guarded(read.sources[found->second], import))) continue;
    if (top_package(import.target) != top_package(module)) continue;
    for (auto dot = import.target.find('.'); dot != std::string::npos; dot = import.target.find('.', dot + 1))
      follow(import.target.substr(0, dot), sure, read);
    follow(import.target, sure, read);
    if (!import.name.empty()) follow(import.target + "." + import.name, sure, read);
  }
}

bool is_asked_module(const Snapshot& snapshot, const std::string& dotted) {
  return std::ranges::any_of(snapshot.modules, [&](const std::string& module) {
    return dotted == module || dotted.starts_with(module + ".");
  });
}

// A name of a sibling package or of a module under diagnosis, seen from another package: what a package
// takes from itself always fits.
bool concerns_us(const Snapshot& snapshot, const PackageSources& read, const std::string& dotted,
                 const std::string& own_package) {
  const std::string top = top_package(dotted);
  return top != own_package && (read.siblings.contains(top) || is_asked_module(snapshot, dotted));
}

// A module under diagnosis is answered "module": what it offers is for its own facts to say, not for
// NameSearch, which reads Python files.
void take_import(const Snapshot& snapshot, const PackageSources& read, NameSearch& names,
                 const Source& source, const ScannedImport& import, Packages& found) {
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
  if (is_asked_module(snapshot, import.target)) {
    taken.offered = "module";
    found.imports.push_back(std::move(taken));
    return;
  }
  const NameOffer offer = names.ask(import.target, import.name);
  taken.offered = offer.answer;
  taken.why = offer.why;
  taken.target_version = version_of(snapshot, read, taken.target_package);
  taken.target_path = offer.package_path;
  found.imports.push_back(std::move(taken));
}

// The part of a dotted name that is one more than a module: `triton.language.math.log1p` asks the module
// triton.language.math for log1p.
void take_use(const Snapshot& snapshot, const PackageSources& read, NameSearch& names, const Source& source,
              const ScannedUse& use, Packages& found) {
  auto dot = use.name.find('.');
  for (auto next = dot; next != std::string::npos; dot = next) {
    next = use.name.find('.', dot + 1);
    if (next == std::string::npos || !names.is_module(use.name.substr(0, next))) break;
  }
  if (dot == std::string::npos) return;
  const std::string target = use.name.substr(0, dot);
  const std::string name = use.name.substr(dot + 1, use.name.find('.', dot + 1) - dot - 1);
  ScannedImport import{use.line, target, name, "", "use", "", use.line};
  if (names.ask(target, name).answer != "yes") take_import(snapshot, read, names, source, import, found);
}

void take_source(const Snapshot& snapshot, const PackageSources& read, NameSearch& names,
                 const Source& source, Packages& found) {
  for (const ScannedCall& call : source.scan.calls)
    if (concerns_us(snapshot, read, call.callee, source.package) && found.calls.size() < kMostFacts)
      found.calls.push_back(
          {source.package, source.version, source.file, call.line, call.callee, call.arguments});
  for (const ScannedImport& import : source.scan.imports)
    if (concerns_us(snapshot, read, import.target, source.package) && found.imports.size() < kMostFacts)
      take_import(snapshot, read, names, source, import, found);
  for (const ScannedUse& use : source.scan.uses)
    if (top_package(use.name) == "triton" && found.imports.size() < kMostFacts)
      take_use(snapshot, read, names, source, use, found);
}

// Through re-exports: causal_conv1d/__init__.py takes its functions from another file.
std::optional<PythonFunction> definition(const PackageSources& read, const std::string& dotted, int depth) {
  const auto dot = dotted.rfind('.');
  if (dot == std::string::npos || depth > 4) return std::nullopt;
  const auto found = read.by_module.find(dotted.substr(0, dot));
  if (found == read.by_module.end()) return std::nullopt;
  const Source& source = read.sources[found->second];
  const std::string name = dotted.substr(dot + 1);
  std::optional<PythonFunction> defined;
  for (const ScannedFunction& function : source.scan.functions)
    if (function.name == name)
      defined = PythonFunction{dotted, source.file, function.line, function.least, function.most};
  for (const ScannedImport& import : source.scan.imports) {
    if (import.bound != name || import.name.empty()) continue;
    if (defined || import.when != "import") return std::nullopt;  // it depends on what runs
    defined = definition(read, import.target + "." + import.name, depth + 1);
    if (!defined) return std::nullopt;
    defined->name = dotted;
  }
  return defined;
}

// The definitions of what the packages call in each other, so that a check can compare argument counts.
std::vector<PythonFunction> callees(const Snapshot& snapshot, const PackageSources& read,
                                    const std::vector<PackageCall>& calls) {
  std::vector<PythonFunction> functions;
  std::set<std::string> asked;
  for (const PackageCall& call : calls)
    if (asked.insert(call.callee).second && !is_asked_module(snapshot, call.callee))
      if (auto function = definition(read, call.callee, 0)) functions.push_back(*std::move(function));
  return functions;
}

// The known packages and those of the importers, with which of their files an import runs.
PackageSources read_packages(const Host& host, const Snapshot& snapshot) {
  PackageSources read;
  read.siblings = {"transformers", "triton"};
  for (const std::string& package : knowledge::known_importers().packages) read.siblings.insert(package);
  for (const std::string& package : knowledge::known_importers().packages)
    if (const auto found = find_python_module(host, snapshot.python.value, package); found && found->package)
      read_package(host, snapshot, *found, package, read);
  for (const Importer& importer : snapshot.importers.value) read_importer(host, snapshot, importer, read);
  for (const std::string& package : read.packages) {
    follow(package, true, read);
    follow(package, false, read);
  }
  return read;
}

}  // namespace

Probed<Packages> probe_packages(const Host& host, const Snapshot& so_far) {
  const PackageSources read = read_packages(host, so_far);
  NameSearch names(host, so_far.python.value);
  Packages found;
  found.found = read.found;
  for (const Source& source : read.sources) take_source(so_far, read, names, source, found);
  found.functions = callees(so_far, read, found.calls);
  read_installation(host, so_far, found);
  read_records(host, so_far, found);
  if (!read.sources.empty() || !found.texts.empty()) return Probed<Packages>::of(std::move(found));
  const auto unreadable = unreadable_site_folders(host, so_far.python.value);
  if (!unreadable.empty()) return Probed<Packages>::failed(unreadable.front());
  return Probed<Packages>::absent(message("no package that uses the modules is installed"));
}

}  // namespace scankit::probes

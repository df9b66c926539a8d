// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/packages/requirements.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <set>

#include "doctor/base/files.h"
#include "doctor/base/text.h"
#include "doctor/probes/imports/importers.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/probes/python/python_text.h"
#include "doctor/probes/python/sys_path.h"

namespace scankit::probes {
namespace {

// The directory or file of a module that is Python: a dotted name is looked for in the package that its
// first part leads to. Nothing for a leftover directory, which an import would take for an empty namespace.
std::optional<std::string> python_files_of(const Host& host, const Python& python, const std::string& name) {
  const auto dot = name.find('.');
  const auto top = find_python_module(host, python, name.substr(0, dot));
  if (!top || top->leftover) return std::nullopt;
  if (dot == std::string::npos) return top->path;
  std::string rest = name.substr(dot + 1);
  std::ranges::replace(rest, '.', '/');
  const std::string path = path_join(top->path, rest);
  if (host.is_directory(path)) return path;
  const std::string file = path + ".py";
  return host.stat(file) ? std::optional(file) : std::nullopt;
}

}  // namespace

std::vector<AskedPackage> find_asked_packages(const Host& host, const Snapshot& so_far) {
  std::vector<AskedPackage> found;
  for (const std::string& name : so_far.modules_asked) {
    const bool compiled = std::ranges::any_of(
        so_far.extensions.value, [&](const Extension& copy) { return copy.module == name && copy.selected; });
    if (compiled) continue;
    if (const auto path = python_files_of(host, so_far.python.value, name)) found.push_back({name, *path});
  }
  return found;
}

namespace {

constexpr std::size_t kFewFiles = 200;  // of a RECORD: one that is there is enough

// pkg.part below the folder of pkg: a folder, a source file, or a compiled one.
bool holds_part(const Host& host, const Python& python, const std::string& folder, const std::string& part) {
  const std::string place = path_join(folder, part);
  if (host.is_directory(place) || is_regular_file(host, place + ".py")) return true;
  return std::ranges::any_of(python.extension_suffixes, [&](const std::string& suffix) {
    return is_regular_file(host, place + suffix);
  });
}

// Unlike python_files_of(), this also takes a compiled submodule, and answers with the path of the
// top-level package.
std::optional<std::string> module_path(const Host& host, const Python& python, const std::string& name) {
  const auto dot = name.find('.');
  const auto found = find_python_module(host, python, name.substr(0, dot));
  if (!found || found->leftover) return std::nullopt;
  if (dot == std::string::npos) return found->path;
  std::string part = name.substr(dot + 1);
  std::ranges::replace(part, '.', '/');
  if (!found->package || !holds_part(host, python, found->path, part)) return std::nullopt;
  return found->path;
}

// A distribution of which nothing but the metadata is left is not installed. Without a RECORD (conda, Debian)
// its metadata is all there is to go by.
bool has_files(const Host& host, const Distribution& distribution) {
  if (distribution.editable) return true;
  const auto record = host.read_file(path_join(distribution.path, "RECORD"));
  if (!record) return true;
  const std::string site = path_dirname(distribution.path), own = path_basename(distribution.path) + "/";
  std::size_t looked_at = 0;
  for (const std::string_view line : lines_of(*record)) {
    const std::string file(line.substr(0, line.find(',')));
    if (file.empty() || file.starts_with(own) || file.starts_with('"')) continue;
    if (host.exists(path_join(site, file))) return true;
    if (++looked_at >= kFewFiles) break;
  }
  return looked_at == 0;
}

}  // namespace

std::vector<Requirement> probe_required(const Host& host, const Snapshot& so_far,
                                        const std::vector<std::string>& names) {
  std::vector<Requirement> required;
  const Python& python = so_far.python.value;
  for (const std::string& name : names) {
    const Distribution* distribution = find_distribution(so_far.distributions.value, name);
    if (const auto path = module_path(host, python, name))
      required.push_back({name, "module", *path});
    else if (distribution != nullptr && has_files(host, *distribution))
      required.push_back({name, "distribution", distribution->path});
    // It may be in the directory that could not be read.
    else if (!unreadable_site_folders(host, python).empty())
      required.push_back({name, "not-read", ""});
    else
      required.push_back({name, "absent", distribution == nullptr ? "" : distribution->path});
  }
  return required;
}

std::vector<Requirement> unread_requirements(const std::vector<std::string>& names) {
  std::vector<Requirement> required;
  for (const std::string& name : names) required.push_back({name, "not-read", ""});
  return required;
}

std::vector<Requirement> required_in(const Snapshot& snapshot, const std::vector<std::string>& names) {
  std::vector<Requirement> required;
  for (const std::string& name : names) {
    const auto& modules = snapshot.extensions.value;
    const auto module = std::ranges::find_if(
        modules, [&](const Extension& file) { return file.module == name && file.selected; });
    if (name == "torch" && snapshot.torch.state == ProbeState::Absent)
      required.push_back({name, "absent", ""});
    else if (module != modules.end())
      required.push_back({name, "module", module->path});
    else if (const Distribution* distribution = find_distribution(snapshot.distributions.value, name))
      required.push_back({name, "distribution", distribution->path});
    else
      required.push_back({name, "not-read", ""});
  }
  return required;
}

namespace {

constexpr std::size_t kLongestMetadata = 1u << 20, kMostDistributions = 200, kMostMissing = 60;

// Parts of torch in wheels of their own: torch-complete,
// cuda-wheels-match and triton-fits know which of them count.
bool part_of_torch(const std::string& name) {
  return name.starts_with("nvidia-") || name.starts_with("cuda-") || name == "triton" ||
         name == "pytorch-triton" || name == "pytorch-triton-rocm" || name == "torch";
}

// SOABI "cpython-311-x86_64-linux-gnu": the machine is the third part.
std::string machine_of(const Snapshot& so_far) {
  const std::string& soabi = so_far.python.value.soabi;
  const auto system = soabi.find("-linux");
  const auto start = system == std::string::npos || system == 0 ? system : soabi.rfind('-', system - 1);
  return start == std::string::npos ? so_far.os.value.machine : soabi.substr(start + 1, system - start - 1);
}

// Walks the requirements of each root breadth first through what is installed, and notes what is not. The
// roots are the packages around the modules, and torch. A package of the current directory is a checkout:
// its metadata, if any, is not what is installed.
class RequirementSearch {
 public:
  RequirementSearch(const Host& host, const Snapshot& so_far)
      : host_(host), snapshot_(so_far), python_(so_far.python.value), machine_(machine_of(so_far)) {}

  std::vector<MissingRequirement> run() {
    for (const PackageFound& package : snapshot_.packages.value.found)
      if (!package.current_folder) of_root(package.name, package.name);
    of_root("torch", "torch");
    return std::move(found_);
  }

 private:
  // `package` is the import name of the root. `through` gathers the import names of everything on the way,
  // so that add_places() can follow an import from the root to the missing package.
  void of_root(const std::string& package, const std::string& distribution) {
    const Distribution* installed = find_distribution(snapshot_.distributions.value, distribution);
    if (installed == nullptr) return;
    const std::size_t first = found_.size();
    std::set<std::string> through;
    std::set<std::string> asked{normalized_name(installed->name)};
    std::deque<std::pair<const Distribution*, std::vector<std::string>>> queue{{installed, {}}};
    while (!queue.empty() && asked.size() < kMostDistributions) {
      const auto [each, extras] = queue.front();
      queue.pop_front();
      for (const RequirementLine& line : lines_of_distribution(*each)) {
        const std::string name = normalized_name(line.name);
        // A marker without an answer does not count: a requirement that may not apply is not missing. The
        // extras are those that the distribution was asked for with.
        if (part_of_torch(name) || marker_holds(line.marker, python_, machine_, extras) != true) continue;
        const Distribution* there = find_distribution(snapshot_.distributions.value, name);
        if (there == nullptr) note(package, *each, line);
        if (there == nullptr || !asked.insert(name).second) continue;
        through.insert(import_name_of(there->name).package);
        queue.emplace_back(there, line.extras);
      }
    }
    add_places(package, first, through);
  }

  std::vector<RequirementLine> lines_of_distribution(const Distribution& distribution) const {
    for (const char* file : {"METADATA", "PKG-INFO"})
      if (const auto text = read_head(host_, path_join(distribution.path, file), kLongestMetadata))
        return requirement_lines(*text);
    return {};
  }

  // Once for each root and package, and only where no file of sys.path would satisfy the import.
  void note(const std::string& root, const Distribution& asks, const RequirementLine& line) {
    const ImportName imported = import_name_of(line.name);
    const auto same = [&](const MissingRequirement& known) {
      return known.root == root && known.package == imported.package;
    };
    if (found_.size() >= kMostMissing || std::ranges::any_of(found_, same)) return;
    if (is_there(imported.package)) return;  // by another distribution, or without a record
    found_.push_back({.distribution = asks.name,
                      .version = asks.version,
                      .root = root,
                      .requirement = line.text(),
                      .name = line.name,
                      .package = imported.package,
                      .guessed = imported.guessed,
                      .file = {}});
  }

  // A Python package or file, or a compiled module, in some folder of sys.path.
  bool is_there(const std::string& package) const {
    if (find_python_module(host_, python_, package)) return true;
    return std::ranges::any_of(python_.sys_path, [&](const PathEntry& entry) {
      return entry.exists && std::ranges::any_of(python_.extension_suffixes, [&](const std::string& suffix) {
               return is_regular_file(host_, path_join(entry.path, package + suffix));
             });
    });
  }

  // The line of code at which `import ROOT` would meet the missing package. Those that no import meets stay
  // without a line, and the check reports them in a note.
  void add_places(const std::string& root, std::size_t first, const std::set<std::string>& through) {
    std::set<std::string> wanted;
    for (std::size_t i = first; i < found_.size(); ++i) wanted.insert(found_[i].package);
    if (wanted.empty()) return;
    const auto places = hard_imports(host_, python_, root, wanted, through);
    for (std::size_t i = first; i < found_.size(); ++i) {
      const auto place = places.find(found_[i].package);
      if (place == places.end()) continue;
      found_[i].file = place->second.file;
      found_[i].line = place->second.line;
    }
  }

  const Host& host_;
  const Snapshot& snapshot_;
  const Python& python_;
  const std::string machine_;
  std::vector<MissingRequirement> found_;
};

}  // namespace

Probed<std::vector<MissingRequirement>> probe_requirements(const Host& host, const Snapshot& so_far) {
  using Found = Probed<std::vector<MissingRequirement>>;
  // A folder that could not be read may hold what seems to be missing.
  if (!so_far.distributions.present()) return Found::failed(so_far.distributions.note);
  return Found::of(RequirementSearch(host, so_far).run());
}

}  // namespace scankit::probes

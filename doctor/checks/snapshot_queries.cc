// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/snapshot_queries.h"

#include <algorithm>
#include <array>

#include "doctor/base/message.h"
#include "doctor/base/text.h"
#include "doctor/base/version.h"
#include "doctor/knowledge/known_packages.h"

namespace scankit::checks {

namespace {

struct Home {
  std::string_view module, package;
};
// The package whose distribution provides the module. It cannot work without the module even if it guards
// the import: mamba_ssm sets the name to None and reports "not installed" at the first call.
constexpr std::array kHomes{Home{"selective_scan_cuda", "mamba-ssm"},
                            Home{"causal_conv1d_cuda", "causal-conv1d"}};

// The modules that `scankit fix` can install in place of a broken one.
constexpr std::array<std::string_view, 4> kShipped{"selective_scan_cuda", "causal_conv1d_cuda",
                                                   "selective_scan_cuda_core", "selective_scan_cuda_oflex"};

template <class Test>
std::vector<Copy> copies_where(const Snapshot& snapshot, const Test& test) {
  std::vector<Copy> found;
  if (!snapshot.extensions.present()) return found;
  const auto& all = snapshot.extensions.value;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (test(all[i])) found.push_back({&all[i], "/extensions/value/" + std::to_string(i)});
  return found;
}

bool is_home(const std::string& module, const std::string& package) {
  return std::ranges::any_of(kHomes, [&](const Home& home) {
    return home.module == module && home.package == normalized_name(package);
  });
}

// Whether scankit's universal module works in this environment: every CPython from 3.8 and every torch from 1.13
// on x86_64 and aarch64, each by the scankit of that processor, free-threaded or not. Versions that are
// not known do not count against it.
bool bundled_module_serves(const Snapshot& snapshot) {
  const Python& python = snapshot.python.value;
  const auto version = Version::parse(python.version);
  const auto torch = Version::parse(snapshot.torch.value.version);
  const auto at_least = [](const std::optional<Version>& v, const char* floor) {
    return !v || *v >= *Version::parse(floor);
  };
  return python.implementation == "cpython" && at_least(version, knowledge::kOldestPython) &&
         at_least(torch, knowledge::kOldestTorch) &&
         (interpreter_machine(snapshot) == "x86_64" || interpreter_machine(snapshot) == "aarch64");
}

}  // namespace

std::vector<Copy> copies(const Snapshot& snapshot) {
  return copies_where(snapshot, [](const Extension&) { return true; });
}
std::vector<Copy> selected_copies(const Snapshot& snapshot) {
  return copies_where(snapshot, [](const Extension& e) { return e.selected; });
}
std::vector<Copy> whole_copies(const Snapshot& snapshot) {
  return copies_where(snapshot, [](const Extension& e) { return e.selected && e.file_state == "elf"; });
}
std::vector<Copy> resolved_copies(const Snapshot& snapshot) {
  return copies_where(snapshot,
                      [](const Extension& e) { return e.selected && e.file_state == "elf" && e.resolved; });
}
std::optional<Copy> selected_copy(const Snapshot& snapshot, const std::string& module) {
  for (const Copy& copy : selected_copies(snapshot))
    if (copy->module == module) return copy;
  return std::nullopt;
}

// A dotted module has only its last part in the file's name.
bool suffix_fits(const Snapshot& snapshot, const Extension& extension) {
  const std::string leaf = extension.module.substr(extension.module.rfind('.') + 1);
  const std::string name = path_basename(extension.path);
  return std::ranges::any_of(snapshot.python.value.extension_suffixes,
                             [&](const std::string& suffix) { return name == leaf + suffix; });
}

// The same order in which import would fail: the file, its machine, versions, libraries,
// symbols, PyInit_.
std::optional<Message> static_obstacle(const Snapshot& snapshot, const Extension& extension) {
  if (extension.file_state == "unreadable" || extension.file_state == "vanished") return std::nullopt;
  if (extension.file_state != "elf") return message("not a complete shared library");
  const std::string machine = interpreter_machine(snapshot);
  if (!machine.empty() && !extension.machine.empty() && extension.machine != machine)
    return message("built for {}", extension.machine);
  if (!extension.resolved) return std::nullopt;
  if (!extension.unmet_versions.empty()) return message("needs {}", extension.unmet_versions.front().version);
  if (!extension.missing_libraries.empty())
    return message("needs {}", extension.missing_libraries.front().soname);
  if (!extension.executable_stack.empty() && refuses_executable_stacks(snapshot) == true)
    return message("requests an executable stack");
  if (const std::size_t n = extension.missing_symbols.size(); n > 0)
    return message_n(n, "{} unresolved symbol", "{} unresolved symbols", n);
  return extension.has_init ? Message() : message("exports no PyInit_{}", extension.module);
}

std::vector<std::size_t> needing_importers(const Snapshot& snapshot, const std::string& module) {
  std::vector<std::size_t> found;
  const auto& importers = snapshot.importers.value;
  for (std::size_t i = 0; i < importers.size(); ++i) {
    const Importer& importer = importers[i];
    if (importer.module == module && (!importer.masked || is_home(module, importer.package)))
      found.push_back(i);
  }
  return found;
}

// A file of the current directory may lie there by chance; it counts only if somebody wants it.
bool is_meant_for_import(const Snapshot& snapshot, const Extension& extension) {
  if (extension.sys_path_index < 0) return false;
  const auto& path = snapshot.python.value.sys_path;
  const auto index = static_cast<std::size_t>(extension.sys_path_index);
  if (index >= path.size() || path[index].origin != "cwd") return true;
  return was_asked_for(snapshot, extension.module) || !needing_importers(snapshot, extension.module).empty();
}

bool is_only_nearby(const Snapshot& snapshot, const Importer& importer) {
  // The innermost directory of the path that contains the file.
  const PathEntry* home = nullptr;
  for (const PathEntry& entry : snapshot.python.value.sys_path) {
    if (!entry.exists || !importer.file.starts_with(entry.path == "/" ? "/" : entry.path + "/")) continue;
    const bool inner = home == nullptr || entry.path.size() > home->path.size();
    // If PYTHONPATH or a .pth file names the current directory as well, its files are there for
    // every program.
    const bool also = !inner && entry.path == home->path && home->origin == "cwd";
    if (inner || also) home = &entry;
  }
  if (home == nullptr || home->origin != "cwd") return false;
  for (const Distribution& installed : snapshot.distributions.value)
    if (installed.editable && !installed.project.empty() &&
        importer.file.starts_with(installed.project + "/"))
      return false;
  const std::string name = path_basename(importer.file);
  const bool test = name.starts_with("test_") || name.ends_with("_test.py") || name == "conftest.py";
  // A program of the user is in the current directory itself and imports the module when it starts.
  const bool starts_here =
      path_dirname(importer.file) == home->path && !importer.masked && !importer.in_function && !test;
  // The sources of the module itself need it only once it is built.
  const auto& built = snapshot.sources.value.modules;
  const bool its_sources = snapshot.sources.present() && snapshot.sources.value.folder == home->path &&
                           std::ranges::find(built, importer.module) != built.end();
  return !starts_here || its_sources;
}

const AskedPackage* asked_package(const Snapshot& snapshot, const std::string& module) {
  const auto found = std::ranges::find(snapshot.packages_asked, module, &AskedPackage::name);
  return found == snapshot.packages_asked.end() ? nullptr : &*found;
}

bool was_asked_for(const Snapshot& snapshot, const std::string& module) {
  return std::ranges::find(snapshot.modules_asked, module) != snapshot.modules_asked.end();
}

const DeclaredPackage* declaring_package(const Snapshot& snapshot, const std::string& module) {
  const auto found = std::ranges::find_if(snapshot.declared, [&](const DeclaredPackage& package) {
    return std::ranges::find(package.modules, module) != package.modules.end();
  });
  return found == snapshot.declared.end() ? nullptr : &*found;
}

bool is_bundled_module(std::string_view module) {
  return std::ranges::find(kShipped, module) != kShipped.end();
}

std::vector<Fix> module_fixes(const Snapshot& snapshot, const std::string& module, const Message& otherwise) {
  if (is_bundled_module(module) && bundled_module_serves(snapshot)) return {InstallModule{module}};
  const auto torch = Version::parse(snapshot.torch.value.version);
  if (is_bundled_module(module) && torch && *torch < *Version::parse(knowledge::kOldestTorch))
    return {Advice{otherwise},
            Advice{message("scankit's own {} needs torch {} or newer, and torch {} is "
                           "installed: install a newer torch, then "
                           "run scankit fix",
                           module, knowledge::kOldestTorch, snapshot.torch.value.version)}};
  return {Advice{otherwise}};
}

// An import after torch outranks a bare one, because that is how extensions of torch are
// meant to be used.
const Observation* deciding_import(const Snapshot& snapshot, const std::string& module) {
  if (!snapshot.observations.present()) return nullptr;
  const Observation* bare = nullptr;
  for (const Observation& seen : snapshot.observations.value) {
    if (seen.module != module || seen.outcome == "not-run") continue;
    if (seen.variant == "torch-first" || seen.variant == "torch-only") return &seen;
    bare = &seen;
  }
  return bare;
}

Message no_module_installed(const Snapshot& snapshot) {
  return selected_copies(snapshot).empty() ? message("no module to check is installed") : "";
}

Message no_copy_found(const Snapshot& snapshot) {
  return copies(snapshot).empty() ? message("no file of a module to check was found") : "";
}

// kLong is how a demangler writes std::string of the new ABI.
std::string readable(const MissingSymbol& symbol) {
  constexpr std::string_view kLong =
      "std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >";
  std::string text = symbol.demangled.empty() ? symbol.name : symbol.demangled;
  for (auto at = text.find(kLong); at != std::string::npos; at = text.find(kLong, at + 1))
    text.replace(at, kLong.size(), "std::string");
  return text;
}

std::vector<Evidence> symbol_evidence(const Copy& copy, const SymbolTest& fits) {
  std::vector<Evidence> evidence;
  const auto& missing = copy->missing_symbols;
  for (std::size_t i = 0; i < missing.size(); ++i)
    if (fits(missing[i])) evidence.push_back(copy.at("missing_symbols", i, "name", missing[i].name));
  return evidence;
}

}  // namespace scankit::checks

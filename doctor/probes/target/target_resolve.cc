// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/target/target_resolve.h"

#include <algorithm>
#include <array>
#include <deque>
#include <set>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/elf/mangling.h"

namespace scankit::probes {
namespace {

using LibraryState = TargetLibrary::State;

bool starts_with_one(const std::string& soname, std::initializer_list<std::string_view> starts) {
  return std::ranges::any_of(starts, [&](std::string_view start) { return soname.starts_with(start); });
}

}  // namespace

bool is_glibc_library(const std::string& soname) {
  return starts_with_one(soname, {"libc.so.", "libm.so.", "libpthread.so.", "libdl.so.", "librt.so.",
                                  "libutil.so.", "libresolv.so.", "ld-linux", "libmvec.so."});
}

TargetLibraries::TargetLibraries(const Host& files, const Snapshot& machine,
                                 std::map<std::string, std::string> named)
    : beside_(files), named_(std::move(named)), machine_(machine) {
  if (machine.torch.present()) learn_torch(machine.torch.value);
  if (machine.exports.present()) learn_tables(machine.exports.value);
  reachable_.insert(machine.reachable.value.begin(), machine.reachable.value.end());
  // What another module of that machine looked for in vain, this one would not find either.
  for (const Extension& other : machine.extensions.value)
    if (other.runpath.empty() && other.rpath.empty())
      for (const MissingLibrary& library : other.missing_libraries) missing_.insert(library.soname);
}

// torch/__init__.py loads libtorch_global_deps.so and torch/_C, which needs libtorch_python.so; the rest
// follows from their needs. The two roots count only where their files are listed, the others because
// something needs them. `lost` has the sonames that torch itself does not find.
void TargetLibraries::learn_torch(const Torch& torch) {
  std::set<std::string> lost;
  for (const TorchNeed& need : torch.missing_libraries) lost.insert(need.soname);
  std::deque<std::string> open{"libtorch_global_deps.so", "libtorch_python.so"};
  while (!open.empty()) {
    const std::string soname = open.front();
    open.pop_front();
    if (lost.contains(soname)) continue;
    const auto library = std::ranges::find(torch.libraries, soname, &Library::soname);
    const bool root = soname == "libtorch_global_deps.so" || soname == "libtorch_python.so";
    if ((root && library == torch.libraries.end()) || !with_torch_.insert(soname).second) continue;
    if (library != torch.libraries.end())
      open.insert(open.end(), library->needed.begin(), library->needed.end());
  }
  for (const Library& library : torch.libraries) paths_[library.path] = library.soname;
  for (const NvidiaWheel& wheel : torch.nvidia_wheels)
    for (const std::string& path : wheel.libraries) paths_[path] = path_basename(path);
}

// A library may be asked for by its soname or by the name of its file. The first table of a name wins.
void TargetLibraries::learn_tables(const Exports& exports) {
  for (const ExportTable& table : exports.libraries) {
    if (!table.soname.empty()) with_torch_.insert(table.soname);
    for (const std::string& name : {table.soname, path_basename(table.path)})
      if (!name.empty()) tables_.emplace(name, &table);
    if (table.global) global_.push_back(&table);
  }
}

const ExportTable* TargetLibraries::table(const std::string& soname) const {
  const auto found = tables_.find(soname);
  return found == tables_.end() ? nullptr : found->second;
}

// A driver whose libcuda the loader does not reach is as good as none for a module that links it.
TargetLibrary TargetLibraries::find_driver() const {
  const Driver& driver = machine_.driver.value;
  if (machine_.driver.state == ProbeState::Absent) return {.state = LibraryState::Missing};
  if (!machine_.driver.present() || driver.libcuda.empty()) return {.state = LibraryState::Open};
  if (driver.libcuda_reached == "not by the loader") return {.state = LibraryState::Missing};
  return {.state = LibraryState::Found, .path = driver.libcuda};
}

// A library that was not found is missing only where the snapshot would list it if it were there.
bool TargetLibraries::is_known_missing(const std::string& soname) const {
  if (machine_.reachable.present() || missing_.contains(soname)) return true;
  // All of torch's own files are listed, and nobody else ships them.
  const bool torch_is_known = machine_.torch.present() || machine_.torch.state == ProbeState::Absent;
  return torch_is_known && is_torch_library(soname);
}

// In the loader's order: what is loaded answers first, whatever the file's own folders hold.
TargetLibrary TargetLibraries::find(const std::string& soname, const std::vector<Folder>& folders) {
  TargetLibrary found{.state = LibraryState::Found, .table = table(soname)};
  if (is_glibc_library(soname) && machine_.libc.present())
    return machine_.libc.value.kind == "glibc" ? found : TargetLibrary{};  // musl: open
  for (const Folder& folder : folders) {
    if (with_torch_.contains(soname)) break;
    if (const auto own = beside_.open(path_join(folder.here, soname))) {
      found.own = *own;
      found.path = (*own)->path;
      return found;
    }
    if (const std::string path = path_join(folder.there, soname); paths_.contains(path)) {
      found.path = path;
      return found;
    }
  }
  if (with_torch_.contains(soname)) {
    // A library in the file's own directories would be found without torch, too.
    found.with_torch = std::ranges::none_of(
        folders, [&](const Folder& f) { return paths_.contains(path_join(f.there, soname)); });
    return found;
  }
  if ((soname == "libstdc++.so.6" || soname == "libgcc_s.so.1") && machine_.libstdcxx.present()) return found;
  if (soname == "libcuda.so.1") return find_driver();
  if (reachable_.contains(soname)) return found;
  // No path leads there: the package's own code loads it before it imports the module (torch.ops.load_library, ctypes.CDLL). A
  // loaded library answers for its soname.
  if (const auto own = named_.find(soname); own != named_.end())
    if (const auto library = beside_.open(own->second)) {
      found.own = *library;
      found.path = own->second;
      return found;
    }
  return {.state = is_known_missing(soname) ? LibraryState::Missing : LibraryState::Open};
}

namespace {

using Found = TargetLibrary::State;

template <class Line>
void add_once(std::vector<Line>& lines, const Line& line) {
  if (!line.empty() && std::ranges::find(lines, line) == lines.end()) lines.push_back(line);
}

std::string site_on_path(const Python& python) {
  const auto site = std::ranges::find(python.sys_path, "site", &PathEntry::origin);
  return site == python.sys_path.end() ? "/site-packages" : site->path;  // any absolute path will do
}

}  // namespace

struct TargetResolver::Walk {
  std::string folder;
  Extension* copy;
  TargetScope scope;
  std::vector<const elf::ElfLibrary*> own;  // the file, and what came with it
};

TargetResolver::TargetResolver(const Host& files, const Snapshot& machine,
                               std::map<std::string, std::string> named)
    : machine_(machine),
      files_(files),
      libraries_(files, machine, std::move(named)),
      names_(machine, libraries_, torch_abi::SymbolIndex::built_in()),
      site_(site_on_path(machine.python.value)) {}

// DT_RUNPATH takes the place of DT_RPATH (ld.so(8)); of the tokens only $ORIGIN says anything about another
// machine. A directory inside `folder` is one inside site-packages there; other paths are the same on both.
std::vector<TargetLibraries::Folder> TargetResolver::folders_of(const elf::ElfLibrary& library,
                                                                const std::string& folder) const {
  const std::string& list = library.dynamic.has_runpath ? library.dynamic.runpath : library.dynamic.rpath;
  const std::string origin = path_dirname(library.path);
  std::vector<TargetLibraries::Folder> folders;
  for (std::size_t at = 0; at < list.size();) {
    const auto end = std::min(list.find(':', at), list.size());
    std::string text = list.substr(at, end - at);
    at = end + 1;
    for (const std::string_view token : {"${ORIGIN}", "$ORIGIN"})
      if (const auto place = text.find(token); place != std::string::npos)
        text.replace(place, token.size(), origin);
    const std::string here = path_normalize(text);
    const bool inside = here == folder || here.starts_with(folder + "/");
    folders.push_back({here, inside ? site_ + here.substr(folder.size()) : here});
  }
  return folders;
}

// From the first source that knows them: the file itself, its export table, the list of torch's libraries.
// Empty where none does.
std::vector<std::string> TargetResolver::needs_of(const std::string& soname,
                                                  const TargetLibrary& library) const {
  if (library.own != nullptr) return library.own->dynamic.needed;
  if (library.table != nullptr) return library.table->needed;
  const auto& torch = machine_.torch.value.libraries;
  const auto known = std::ranges::find(torch, soname, &Library::soname);
  return known == torch.end() ? std::vector<std::string>() : known->needed;
}

void TargetResolver::take_library(const std::string& soname, const std::string& needed_by,
                                  const TargetLibrary& library, Extension& copy) const {
  if (library.state == Found::Missing)
    copy.missing_libraries.push_back(
        {soname, needed_by, {message("what the snapshot lists of that machine")}, {}, {}});
  if (library.state == Found::Open)
    add_once(copy.undecided,
             message("whether {}, which {} needs, exists on that machine: the snapshot does not list what "
                     "its loader finds",
                     soname, path_basename(needed_by)));
  if (library.with_torch && !is_glibc_library(soname) && soname != "libstdc++.so.6" &&
      soname != "libgcc_s.so.1")
    add_once(copy.needs_torch_first, soname);
}

// Breadth first, as the loader does it: the first object that needs a soname decides where it is searched. An object
// without RUNPATH is searched for by its own RPATH and then by that of the objects that brought it (glibc, elf/dl-load.c):
// auditwheel gives an RPATH to the extension alone.
void TargetResolver::walk(const elf::ElfLibrary& file, Walk& walk) {
  struct Need {
    std::string soname, needed_by;
    std::vector<TargetLibraries::Folder> folders;
    std::vector<TargetLibraries::Folder>
        rpaths;  // of the object that needs it, and of those that brought that one
    bool ours;   // wanted by a file from here; what that machine's own libraries lack is no news
  };
  std::deque<Need> open;
  const auto add = [&](const elf::ElfLibrary& by, const std::vector<std::string>& needed,
                       std::vector<TargetLibraries::Folder> rpaths) {
    std::vector<TargetLibraries::Folder> folders = folders_of(by, walk.folder);
    if (!by.dynamic.has_runpath) {
      rpaths.insert(rpaths.begin(), folders.begin(), folders.end());
      folders = rpaths;
    }
    for (const std::string& soname : needed) open.push_back({soname, by.path, folders, rpaths, true});
  };
  walk.own.push_back(&file);
  add(file, file.dynamic.needed, {});
  while (!open.empty()) {
    const Need need = open.front();
    open.pop_front();
    if (walk.scope.by_soname.contains(need.soname)) continue;
    const TargetLibrary library = libraries_.find(need.soname, need.folders);
    walk.scope.by_soname[need.soname] = library;
    if (need.ours) take_library(need.soname, need.needed_by, library, *walk.copy);
    if (library.state != Found::Found) continue;
    walk.copy->closure.push_back(library.path.empty() ? need.soname : library.path);
    if (library.own != nullptr) {
      walk.own.push_back(library.own.get());
      add(*library.own, needs_of(need.soname, library), need.rpaths);
    } else {
      for (const std::string& soname : needs_of(need.soname, library))
        open.push_back({soname, need.soname, {}, {}, false});
    }
  }
}

// A version that the snapshot does not decide counts as defined here; the symbols that need it stay open.
void TargetResolver::take_versions(const elf::ElfLibrary& library, Extension& copy) const {
  for (const elf::VersionNeed& need : library.symbols.versions().needs()) {
    if (need.weak || names_.defines_version(need.file, need.name).value_or(true)) continue;
    UnmetVersion unmet;
    unmet.library =
        need.file == "libc.so.6" && !machine_.libc.value.path.empty() ? machine_.libc.value.path : need.file;
    unmet.version = need.name;
    const std::string newest = names_.newest_version(need.name);
    if (!newest.empty()) unmet.provided_max = need.name.substr(0, need.name.rfind('_') + 1) + newest;
    unmet.needed_by = library.path;
    if (const auto undefined = library.symbols.undefined())
      for (const elf::UndefinedSymbol& symbol : *undefined)
        if (symbol.version == need.name && unmet.symbols.size() < 64) unmet.symbols.push_back(symbol.name);
    copy.unmet_versions.push_back(std::move(unmet));
  }
}

void TargetResolver::take_names(const TargetScope& scope, Extension& copy) {
  const auto undefined = scope.file->symbols.undefined();
  if (!undefined) {
    copy.resolved = false;
    copy.resolution_note = undefined.error().message;
    return;
  }
  // A missing library may be the one that defines a name without an owner.
  const bool may_be_a_strangers = std::ranges::any_of(
      scope.by_soname, [](const auto& entry) { return entry.second.state == Found::Missing; });
  for (const elf::UndefinedSymbol& symbol : *undefined) {
    if (symbol.weak) continue;
    ++copy.undefined;
    NameAnswer answer = names_.ask(symbol, scope);
    if (answer.state == NameAnswer::State::Provided) {
      ++copy.provided;
      add_once(copy.taken_on_trust, answer.why);
    } else if (answer.state == NameAnswer::State::Open) {
      add_once(copy.undecided, answer.why);
    } else {
      if (answer.missing.owner == "own" && may_be_a_strangers) answer.missing.owner = "unknown";
      copy.missing_symbols.push_back(std::move(answer.missing));
    }
  }
}

void TargetResolver::resolve(Extension& copy, const std::string& folder, bool tag_is_promised) {
  const auto file = files_.open(copy.path);
  if (!file) {
    copy.resolution_note = file.error().message;
    return;
  }
  copy.resolved = true;
  Walk state{folder, &copy, {}, {}};
  state.scope.file = file->get();
  state.scope.tag = copy.tag;
  state.scope.tag_is_promised = tag_is_promised;
  copy.closure.push_back(copy.path);
  walk(**file, state);
  for (const elf::ElfLibrary* library : state.own) {
    take_versions(*library, copy);
    if (elf::requests_executable_stack(library->image)) copy.executable_stack.push_back(library->path);
  }
  take_names(state.scope, copy);
}

}  // namespace scankit::probes

// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/target/elsewhere_libraries.h"

#include <algorithm>
#include <array>
#include <deque>

#include "doctor/base/files.h"

namespace scankit {
namespace {

using LibraryState = ElsewhereLibrary::State;

bool starts_with_one(const std::string& soname, std::initializer_list<std::string_view> starts) {
  return std::ranges::any_of(starts, [&](std::string_view start) { return soname.starts_with(start); });
}

bool is_torch_library(const std::string& soname) {
  return starts_with_one(soname, {"libtorch", "libc10", "libcaffe2", "libshm.so"});
}

}  // namespace

bool is_glibc_library(const std::string& soname) {
  return starts_with_one(soname, {"libc.so.", "libm.so.", "libpthread.so.", "libdl.so.", "librt.so.",
                                  "libutil.so.", "libresolv.so.", "ld-linux", "libmvec.so."});
}

ElsewhereLibraries::ElsewhereLibraries(const Host& files, const Snapshot& machine)
    : beside_(files), machine_(machine) {
  if (machine.torch.present()) learn_torch(machine.torch.value);
  if (machine.exports.present()) learn_tables(machine.exports.value);
  reachable_.insert(machine.reachable.value.begin(), machine.reachable.value.end());
  // What another module of that machine looked for in vain, this one would not find either.
  for (const Extension& other : machine.extensions.value)
    if (other.runpath.empty() && other.rpath.empty())
      for (const MissingLibrary& library : other.missing_libraries) missing_.insert(library.soname);
}

// torch/__init__.py loads libtorch_global_deps.so and torch/_C, which needs libtorch_python.so; the rest
// follows from their needs.
void ElsewhereLibraries::learn_torch(const Torch& torch) {
  std::set<std::string> lost;
  for (const std::string& line : torch.missing_libraries) lost.insert(line.substr(0, line.find(' ')));
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

void ElsewhereLibraries::learn_tables(const Exports& exports) {
  for (const ExportTable& table : exports.libraries) {
    if (!table.soname.empty()) with_torch_.insert(table.soname);
    for (const std::string& name : {table.soname, path_basename(table.path)})
      if (!name.empty()) tables_.emplace(name, &table);
    if (table.global) global_.push_back(&table);
  }
}

const ExportTable* ElsewhereLibraries::table(const std::string& soname) const {
  const auto found = tables_.find(soname);
  return found == tables_.end() ? nullptr : found->second;
}

ElsewhereLibrary ElsewhereLibraries::find_driver() const {
  const Driver& driver = machine_.driver.value;
  if (machine_.driver.state == ProbeState::Absent) return {.state = LibraryState::Missing};
  if (!machine_.driver.present() || driver.libcuda.empty()) return {.state = LibraryState::Open};
  if (driver.libcuda_reached == "not by the loader") return {.state = LibraryState::Missing};
  return {.state = LibraryState::Found, .path = driver.libcuda};
}

bool ElsewhereLibraries::is_known_missing(const std::string& soname) const {
  if (machine_.reachable.present() || missing_.contains(soname)) return true;
  // All of torch's own files are listed, and nobody else ships them.
  const bool torch_is_known = machine_.torch.present() || machine_.torch.state == ProbeState::Absent;
  return torch_is_known && is_torch_library(soname);
}

// In the loader's order: what is loaded answers first, whatever the file's own folders hold.
ElsewhereLibrary ElsewhereLibraries::find(const std::string& soname, const std::vector<Folder>& folders) {
  ElsewhereLibrary found{.state = LibraryState::Found, .table = table(soname)};
  if (is_glibc_library(soname) && machine_.libc.present())
    return machine_.libc.value.kind == "glibc" ? found : ElsewhereLibrary{};
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
    found.with_torch = std::ranges::none_of(
        folders, [&](const Folder& f) { return paths_.contains(path_join(f.there, soname)); });
    return found;
  }
  if ((soname == "libstdc++.so.6" || soname == "libgcc_s.so.1") && machine_.libstdcxx.present()) return found;
  if (soname == "libcuda.so.1") return find_driver();
  if (reachable_.contains(soname)) return found;
  return {.state = is_known_missing(soname) ? LibraryState::Missing : LibraryState::Open};
}

}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/extensions/extension_missing.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "doctor/base/files.h"
#include "doctor/elf/mangling.h"

namespace scankit {
namespace {

using Libraries = std::vector<std::shared_ptr<const ElfLibrary>>;

struct Candidate {
  std::string demangled, library;
};
// By qualified name, strings of either ABI written alike.
using Candidates = std::multimap<std::string, Candidate>;

std::string function_name(const std::string& demangled) {
  return qualified_name(without_string_abi(demangled));
}

// A function may have become const, or stopped to be: both spellings are looked for.
std::vector<std::string> prefixes_of(const std::string& name) {
  const std::string prefix = overload_prefix(name);
  if (prefix.empty()) return {};
  if (prefix.starts_with("_ZNK")) return {prefix, "_ZN" + prefix.substr(4)};
  if (prefix.starts_with("_ZN")) return {prefix, "_ZNK" + prefix.substr(3)};
  return {prefix};
}

Candidates collect_candidates(const Libraries& torch, const std::vector<MissingSymbol>& missing) {
  std::vector<std::string> prefixes;
  for (const MissingSymbol& symbol : missing)
    if (symbol.owner == "torch") std::ranges::move(prefixes_of(symbol.name), std::back_inserter(prefixes));
  Candidates candidates;
  if (prefixes.empty()) return candidates;
  for (const auto& library : torch)
    for (const std::string& name : library->symbols.exported_with_prefix(prefixes, kCandidateLimit)) {
      std::string text = demangle(name);
      std::string key = function_name(text);
      candidates.emplace(std::move(key), Candidate{std::move(text), library->path});
    }
  return candidates;
}

// The flip is proven by the export table: a real exported name that reads the same but for its strings.
// Making the other spelling by hand would have to renumber every substitution behind a string.
void compare(const Candidates& candidates, MissingSymbol& symbol) {
  std::set<std::string> near;
  const auto [first, last] = candidates.equal_range(function_name(symbol.demangled));
  for (auto it = first; it != last; ++it) {
    if (differ_only_in_string_abi(it->second.demangled, symbol.demangled))
      symbol.flipped_exported_by = it->second.library;
    else if (it->second.demangled != symbol.demangled)
      near.insert(it->second.demangled);
  }
  if (!symbol.flipped_exported_by.empty()) return;  // other overloads would only distract
  for (const std::string& text : near)
    if (symbol.near.size() < kNearLimit) symbol.near.push_back(text);
}

// Libraries that no stranger's function is expected in.
bool is_well_known(const std::string& soname) {
  constexpr std::array<std::string_view, 24> kStarts{
      "libc.so",      "libm.so",     "libdl.so",    "librt.so",  "libpthread.so", "ld-linux",
      "libstdc++.so", "libgcc_s.so", "libgomp",     "libpython", "libtorch",      "libc10",
      "libshm.so",    "libcuda.so",  "libcudart",   "libcublas", "libcudnn",      "libcufft",
      "libcurand",    "libcusparse", "libcusolver", "libnvrtc",  "libnvJitLink",  "libnccl"};
  return std::ranges::any_of(kStarts, [&](std::string_view start) { return soname.starts_with(start); });
}

std::string stem_of(const std::string& soname) { return soname.substr(0, soname.find(".so")) + ".so."; }

// Where people's CUDA and torch libraries lie although the loader does not look there.
std::vector<std::string> usual_folders(const Host& host, const Snapshot& so_far,
                                       const SearchContext& context) {
  std::vector<std::string> folders;
  const std::string torch = so_far.torch.value.location;
  if (!torch.empty()) {
    folders.push_back(torch + "/lib");
    const std::string nvidia = path_dirname(torch) + "/nvidia";
    if (const auto wheels = host.list(nvidia))
      for (const DirEntry& wheel : *wheels) folders.push_back(nvidia + "/" + wheel.name + "/lib");
  }
  for (const std::string& prefix : {so_far.python.value.prefix, so_far.python.value.base_prefix})
    if (!prefix.empty()) folders.push_back(prefix + "/lib");
  for (const Toolkit& toolkit : so_far.toolkits.value) {
    folders.push_back(toolkit.root + "/lib64");
    folders.push_back(toolkit.root + "/lib");
  }
  if (const auto local = host.list("/usr/local"))
    for (const DirEntry& entry : *local)
      if (entry.name.starts_with("cuda")) folders.push_back("/usr/local/" + entry.name + "/lib64");
  folders.insert(folders.end(), context.default_folders.begin(), context.default_folders.end());
  return folders;
}

}  // namespace

void explain_missing_symbols(const Extension& copy, const Libraries& torch,
                             std::vector<MissingSymbol>& missing) {
  const bool may_be_a_strangers = !std::ranges::all_of(copy.needed, is_well_known);
  for (MissingSymbol& symbol : missing) {
    symbol.demangled = demangle(symbol.name);
    symbol.owner = symbol_owner(symbol.name, symbol.version);
    if (symbol.owner == "own" && may_be_a_strangers) symbol.owner = "unknown";
    for (const auto& library : torch)
      if (symbol.exported_by_torch.empty() && library->symbols.exports(SymbolQuery(symbol.name)))
        symbol.exported_by_torch = library->path;
  }
  const Candidates candidates = collect_candidates(torch, missing);
  for (MissingSymbol& symbol : missing)
    if (symbol.owner == "torch") compare(candidates, symbol);
}

void look_elsewhere(const Host& host, const Snapshot& so_far, const SearchContext& context,
                    MissingLibrary& missing) {
  const std::string stem = stem_of(missing.soname);
  std::map<std::string, std::string> others;  // soname -> the first file of that name
  const auto offer = [&](const std::string& name, const std::string& path) {
    if (name == missing.soname) {
      if (std::ranges::find(missing.found_elsewhere, path) == missing.found_elsewhere.end())
        missing.found_elsewhere.push_back(path);
      return;
    }
    // "libcudart.so.13" and "libcudart.so.11.0" are sonames; "libcudart.so.13.0.96" is the file behind one.
    if (name.starts_with(stem) &&
        std::count(name.begin() + static_cast<long>(stem.size()), name.end(), '.') < 2)
      others.emplace(name, path);
  };
  for (const std::string& folder : usual_folders(host, so_far, context))
    if (const auto entries = host.list(folder))
      for (const DirEntry& entry : *entries) offer(entry.name, folder + "/" + entry.name);
  for (const LdCache::Entry& entry : context.cache.entries()) offer(entry.soname, entry.path);
  for (const auto& [name, path] : others)
    missing.same_library_other_version.push_back(name + " (" + path + ")");
}

}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/extensions/extension_resolve.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/version.h"
#include "doctor/elf/mangling.h"
#include "doctor/elf/process_image.h"

namespace scankit::probes {
namespace {

std::string soname_of(const elf::LoadedObject& object) {
  const elf::Dynamic& dynamic = object.library->dynamic;
  return dynamic.has_soname ? dynamic.soname : path_basename(object.path);
}

// The newest version of the same family: "GLIBC_2.36" for a need of "GLIBC_2.38".
std::string newest_like(const elf::Versions& versions, const std::string& wanted) {
  const std::string family = wanted.substr(0, wanted.rfind('_') + 1);
  std::optional<Version> newest;
  std::string text;
  for (const elf::VersionDefinition& d : versions.definitions()) {
    if (d.base || !d.name.starts_with(family)) continue;
    const auto version = Version::parse(d.name.substr(family.size()));
    if (!version || (newest && *version <= *newest)) continue;
    newest = version;
    text = d.name;
  }
  return text;
}

}  // namespace

elf::TorchLoadRequest torch_load_request(const Snapshot& so_far) {
  elf::TorchLoadRequest request;
  request.location = so_far.torch.value.location;
  if (const auto cuda = Version::parse(so_far.torch.value.cuda))
    request.cuda_major = std::to_string(cuda->part(0));
  for (const PathEntry& entry : so_far.python.value.sys_path) request.sys_path.push_back(entry.path);
  request.extension_suffixes = so_far.python.value.extension_suffixes;
  return request;
}

// A process whose own needs are not met is kept and reported as a failure: results for libraries that are
// loaded into it would be meaningless.
ExtensionResolver::ExtensionResolver(const Host& host, const Snapshot& so_far)
    : host_(host), so_far_(so_far), libraries_(host) {
  auto process = elf::ProcessImage::start(libraries_, so_far.python.value.executable);
  if (!process) {
    failure_ = message("the loader's behaviour could not be determined: {}", process.error().message);
    return;
  }
  bare_ = *std::move(process);
  if (!bare_->missing_at_start().empty()) {
    const elf::UnfoundLibrary& first = bare_->missing_at_start().front();
    failure_ = message("the interpreter itself does not start: {}, needed by {}, was not found", first.name,
                       first.needed_by);
  }
  with_torch_ = bare_;
  if (so_far.torch.present()) load_torch_here(host, so_far);
}

void ExtensionResolver::load_torch_here(const Host& host, const Snapshot& so_far) {
  const elf::TorchLoad torch = elf::load_torch(*with_torch_, host, torch_load_request(so_far));
  if (!torch.loaded) torch_note_ = message("torch could not be loaded: {}", torch.note);
  for (const elf::UnfoundLibrary& missing : torch.missing)
    torch_missing_.push_back({missing.name, "", path_normalize(missing.needed_by), missing.fatal});
  // Version needs of what torch brought: the loader refuses these libraries, so they count as missing, too.
  std::vector<int> added;
  for (int i = bare_->object_count(); i < with_torch_->object_count(); ++i) added.push_back(i);
  for (const elf::UnmetNeed& unmet : with_torch_->unmet_versions(added))
    torch_missing_.push_back({soname_of(with_torch_->object(unmet.provider)), unmet.version,
                              path_normalize(with_torch_->object(unmet.object).path), ""});
}

// Strong names only: a weak one may stay unbound. The libraries of torch are opened only to explain a name
// that is missing.
void ExtensionResolver::take_symbols(const elf::ProcessImage& process, const elf::LoadResult& loaded,
                                     Extension& copy) {
  const auto resolved = process.resolve(loaded.object, loaded.list);
  if (!resolved) {
    copy.resolved = false;
    copy.resolution_note = resolved.error().message;
    return;
  }
  for (const elf::ResolvedSymbol& r : *resolved) {
    if (r.symbol.weak) continue;
    ++copy.undefined;
    if (r.provider >= 0) {
      ++copy.provided;
      continue;
    }
    MissingSymbol missing;
    missing.name = r.symbol.name;
    missing.version = r.symbol.version;
    copy.missing_symbols.push_back(std::move(missing));
  }
  if (copy.missing_symbols.empty()) return;
  std::vector<std::shared_ptr<const elf::ElfLibrary>> torch;
  for (const Library& library : so_far_.torch.value.libraries)
    if (const auto opened = libraries_.open(library.path)) torch.push_back(*opened);
  explain_missing_symbols(copy, torch, copy.missing_symbols);
}

// `loaded.missing` has the needs of the whole closure, not those of the file alone.
void ExtensionResolver::take_libraries(const elf::LoadResult& loaded, Extension& copy) {
  for (const elf::UnfoundLibrary& unfound : loaded.missing) {
    MissingLibrary missing;
    missing.soname = unfound.name;
    missing.needed_by = path_normalize(unfound.needed_by);
    missing.searched = unfound.searched;
    if (!unfound.fatal.empty()) missing.searched.push_back(message("stopped at {}", unfound.fatal));
    look_elsewhere(host_, so_far_, with_torch_->context(), missing);
    copy.missing_libraries.push_back(std::move(missing));
  }
}

void ExtensionResolver::take_versions(const elf::ProcessImage& process, const elf::LoadResult& loaded,
                                      Extension& copy) {
  for (const elf::UnmetNeed& unmet : process.unmet_versions(loaded.added)) {
    UnmetVersion entry;
    entry.library = path_normalize(process.object(unmet.provider).path);
    entry.version = unmet.version;
    entry.provided_max =
        newest_like(process.object(unmet.provider).library->symbols.versions(), unmet.version);
    entry.needed_by = path_normalize(process.object(unmet.object).path);
    // The names only show what the version is needed for, so 64 are enough.
    if (const auto undefined = process.object(unmet.object).library->symbols.undefined())
      for (const elf::UndefinedSymbol& symbol : *undefined)
        if (symbol.version == unmet.version && entry.symbols.size() < 64)
          entry.symbols.push_back(symbol.name);
    copy.unmet_versions.push_back(std::move(entry));
  }
}

// What is there only because torch came first: libraries that a bare import would not find, and, where it
// finds them all, those whose names it reaches through torch's global scope.
void ExtensionResolver::take_need_of_torch(const elf::LoadResult& loaded, Extension& copy) {
  elf::ProcessImage bare = *bare_;
  const elf::LoadResult alone = bare.load(copy.path, bare.python_object(), false);
  if (alone.object < 0) return;
  const auto add = [&](const std::string& name) {
    if (std::ranges::find(copy.needs_torch_first, name) == copy.needs_torch_first.end())
      copy.needs_torch_first.push_back(name);
  };
  for (const elf::UnfoundLibrary& unfound : alone.missing)
    if (std::ranges::none_of(loaded.missing,
                             [&](const elf::UnfoundLibrary& m) { return m.name == unfound.name; }))
      add(unfound.name);
  if (!alone.missing.empty()) return;
  const auto resolved = bare.resolve(alone.object, alone.list);
  if (!resolved) return;
  for (const elf::ResolvedSymbol& r : *resolved) {
    if (r.symbol.weak || r.provider >= 0) continue;
    const int provider = with_torch_->provider_of(elf::SymbolQuery(r.symbol), {});
    if (provider >= 0) add(soname_of(with_torch_->object(provider)));
  }
}

namespace {

bool wants_executable_stack(const elf::ProcessImage& process, int object) {
  return elf::requests_executable_stack(process.object(object).library->image);
}

}  // namespace

std::vector<std::string> ExtensionResolver::executable_stacks(const elf::ProcessImage& process,
                                                              const elf::LoadResult& loaded) const {
  for (int i = 0; i < bare_->object_count(); ++i)
    if (wants_executable_stack(*bare_, i)) return {};
  std::vector<std::string> files;
  for (const int i : loaded.added)
    if (wants_executable_stack(process, i)) files.push_back(path_normalize(process.object(i).path));
  return files;
}

void ExtensionResolver::resolve(Extension& copy) {
  if (!failure_.empty()) {
    copy.resolution_note = failure_;
    return;
  }
  // A copy: the process with torch serves every extension.
  elf::ProcessImage process = *with_torch_;
  const elf::LoadResult loaded = process.load(copy.path, process.python_object(), false);
  if (loaded.object < 0) {
    copy.resolution_note = loaded.failure;
    return;
  }
  copy.resolved = true;
  copy.resolution_note = torch_note_;
  for (const int i : loaded.list) copy.closure.push_back(path_normalize(process.object(i).path));
  take_symbols(process, loaded, copy);
  take_libraries(loaded, copy);
  take_versions(process, loaded, copy);
  copy.executable_stack = executable_stacks(process, loaded);
  if (so_far_.torch.present()) take_need_of_torch(loaded, copy);
}

namespace {

using Libraries = std::vector<std::shared_ptr<const elf::ElfLibrary>>;

struct Candidate {
  std::string demangled, library;
};
// By qualified name, strings of either ABI written alike.
using Candidates = std::multimap<std::string, Candidate>;

std::string function_name(const std::string& demangled) {
  return elf::qualified_name(elf::without_string_abi(demangled));
}

// A function may have become const, or stopped to be: both spellings are looked for.
std::vector<std::string> prefixes_of(const std::string& name) {
  const std::string prefix = elf::overload_prefix(name);
  if (prefix.empty()) return {};
  if (prefix.starts_with("_ZNK")) return {prefix, "_ZN" + prefix.substr(4)};
  if (prefix.starts_with("_ZN")) return {prefix, "_ZNK" + prefix.substr(3)};
  return {prefix};
}

// Names of torch that begin like a missing one. One pass over each library serves all missing names.
Candidates collect_candidates(const Libraries& torch, const std::vector<MissingSymbol>& missing) {
  std::vector<std::string> prefixes;
  for (const MissingSymbol& symbol : missing)
    if (symbol.owner == "torch") std::ranges::move(prefixes_of(symbol.name), std::back_inserter(prefixes));
  Candidates candidates;
  if (prefixes.empty()) return candidates;
  for (const auto& library : torch)
    for (const std::string& name : library->symbols.exported_with_prefix(prefixes, kCandidateLimit)) {
      std::string text = elf::demangle(name);
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
    if (elf::differ_only_in_string_abi(it->second.demangled, symbol.demangled))
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

// "libcudart.so." of "libcudart.so.12".
std::string stem_of(const std::string& soname) { return soname.substr(0, soname.find(".so")) + ".so."; }

// Where people's CUDA and torch libraries lie although the loader does not look there.
// Each may be missing; look_elsewhere() lists those that exist.
std::vector<std::string> usual_folders(const Host& host, const Snapshot& so_far,
                                       const elf::SearchContext& context) {
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
  // Where the file needs a third party's library, a name without a known owner may belong to that library.
  const bool may_be_a_strangers = !std::ranges::all_of(copy.needed, is_well_known);
  for (MissingSymbol& symbol : missing) {
    symbol.demangled = elf::demangle(symbol.name);
    symbol.owner = elf::symbol_owner(symbol.name, symbol.version);
    if (symbol.owner == "own" && may_be_a_strangers) symbol.owner = "unknown";
    for (const auto& library : torch)
      if (symbol.exported_by_torch.empty() && library->symbols.exports(elf::SymbolQuery(symbol.name)))
        symbol.exported_by_torch = library->path;
  }
  const Candidates candidates = collect_candidates(torch, missing);
  for (MissingSymbol& symbol : missing)
    if (symbol.owner == "torch") compare(candidates, symbol);
}

// Files are found by their names alone: found_elsewhere means that such a file exists, not that it
// would load.
void look_elsewhere(const Host& host, const Snapshot& so_far, const elf::SearchContext& context,
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
  for (const elf::LdCache::Entry& entry : context.cache.entries()) offer(entry.soname, entry.path);
  for (const auto& [name, path] : others)
    missing.same_library_other_version.push_back(name + " (" + path + ")");
}

}  // namespace scankit::probes

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <optional>
#include <set>
#include <unordered_map>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/elf/image.h"
#include "doctor/elf/mangling.h"
#include "doctor/model/snapshot.h"
#include "doctor/probes/extensions/extension_resolve.h"
#include "doctor/probes/extensions/extensions.h"

// An audit is static. A file that lacks something is tried again with installed libraries loaded first, as
// its package may do by ctypes (settled_by); what is missing even then is the answer. try_suspects() of
// imports/observed.h then really loads the files that fail here.
namespace scankit::probes {
namespace {

constexpr std::size_t kListLimit = 16;  // of each kind of thing missing, per file
constexpr int kRounds = 8;              // of loading first what the last round missed

bool is_libtorch_or_libc10(const std::string& name) {
  return name.starts_with("libtorch") || name.starts_with("libc10");
}

bool is_cuda_soname(const std::string& name) {
  constexpr std::array<std::string_view, 14> kCuda{
      "libcuda.so",  "libcudart",    "libcublas", "libcudnn",      "libcufft", "libcurand", "libcusolver",
      "libcusparse", "libnvJitLink", "libnvrtc",  "libnvToolsExt", "libcupti", "libnccl",   "libnvidia-ml"};
  return std::ranges::any_of(kCuda, [&](std::string_view start) { return name.starts_with(start); });
}

// What a file lacks when it is loaded into a given process; each list has at most kListLimit entries.
struct Attempt {
  Message failure;
  std::vector<AuditedLibrary> libraries;
  std::vector<AuditedSymbol> symbols;
  std::vector<AuditedVersion> versions;
  std::vector<std::string> executable_stack;
  bool complete() const {
    return failure.empty() && libraries.empty() && symbols.empty() && versions.empty();
  }
};

// What the audited files are loaded into: the installed libraries and the processes of the resolver, and what
// was read on the way and is asked for again.
struct Loading {
  const Host& host;
  const Snapshot& snapshot;
  InstalledLibraries installed;
  ExtensionResolver resolver;
  std::optional<std::string> machine;  // of the interpreter
  std::unordered_map<const elf::ElfLibrary*, std::vector<elf::UndefinedSymbol>> undefined;
};

bool links_cuda(const elf::ElfLibrary& library) {
  return std::ranges::any_of(library.dynamic.needed, is_cuda_soname);
}

// By its needs, or by a C++ name of torch's. A C name is not enough: see offer_torch().
bool uses_torch(const elf::ElfLibrary& library, const Result<std::vector<elf::UndefinedSymbol>>& undefined) {
  if (std::ranges::any_of(library.dynamic.needed, is_libtorch_or_libc10)) return true;
  return undefined && std::ranges::any_of(*undefined, [](const elf::UndefinedSymbol& symbol) {
           return symbol.name.starts_with("_Z") && elf::symbol_owner(symbol.name, symbol.version) == "torch";
         });
}

// torch.ops.load_library takes a path: libtorchaudio.so is meant to be loaded by itself.
bool makes_operators(const std::vector<elf::UndefinedSymbol>& undefined) {
  return std::ranges::any_of(
      undefined, [](const elf::UndefinedSymbol& symbol) { return registers_operators(symbol.name); });
}

// The strong ones. Read once, however many extensions bring the library.
const std::vector<elf::UndefinedSymbol>& undefined_of(Loading& loading, const elf::ElfLibrary& library) {
  const auto known = loading.undefined.find(&library);
  if (known != loading.undefined.end()) return known->second;
  std::vector<elf::UndefinedSymbol> strong;
  if (auto all = library.symbols.undefined()) {
    strong = *std::move(all);
    std::erase_if(strong, [](const elf::UndefinedSymbol& symbol) { return symbol.weak; });
  }
  return loading.undefined.emplace(&library, std::move(strong)).first->second;
}

// import calls dlopen with RTLD_NOW: every object that comes along is bound at once, not the module alone.
void take_symbols(Loading& loading, const elf::ProcessImage& process, const elf::LoadResult& loaded,
                  int object, Attempt& attempt) {
  const elf::ElfLibrary& library = *process.object(object).library;
  for (const elf::UndefinedSymbol& symbol : undefined_of(loading, library)) {
    if (process.provider_of(elf::SymbolQuery(symbol), loaded.list) >= 0) continue;
    if (attempt.symbols.size() >= kListLimit) return;
    AuditedSymbol missing{symbol.name, symbol.version, elf::symbol_owner(symbol.name, symbol.version),
                          path_normalize(process.object(object).path), ""};
    attempt.symbols.push_back(std::move(missing));
  }
}

Attempt try_loading(Loading& loading, const elf::ProcessImage& base, const std::string& path) {
  Attempt attempt;
  elf::ProcessImage process = base;
  const elf::LoadResult loaded = process.load(path, process.python_object(), false);
  attempt.failure = loaded.failure;
  if (loaded.object < 0) return attempt;
  for (const elf::UnfoundLibrary& unfound : loaded.missing)
    if (attempt.libraries.size() < kListLimit)
      attempt.libraries.push_back({unfound.name, path_normalize(unfound.needed_by)});
  for (const elf::UnmetNeed& unmet : process.unmet_versions(loaded.added))
    if (attempt.versions.size() < kListLimit)
      attempt.versions.push_back({path_normalize(process.object(unmet.provider).path), unmet.version,
                                  path_normalize(process.object(unmet.object).path)});
  attempt.executable_stack = loading.resolver.executable_stacks(process, loaded);
  // Names of a library that is not there are missing with it.
  const bool only_own = !attempt.libraries.empty();
  for (const int object : loaded.added)
    if (!only_own) take_symbols(loading, process, loaded, object, attempt);
  return attempt;
}

// By file name; by soname, where a wheel's repair gave the file another name, in the same distribution.
std::string find_installed(Loading& loading, const std::string& soname, const std::string& distribution) {
  std::string other;
  for (auto [it, end] = loading.installed.by_name.equal_range(soname); it != end; ++it) {
    const auto owner = loading.installed.owners.find(it->second);
    if (owner != loading.installed.owners.end() && owner->second == distribution) return it->second;
    other = it->second;
  }
  if (!other.empty()) return other;
  const auto mates = loading.installed.by_owner.find(distribution);
  if (mates == loading.installed.by_owner.end()) return "";
  for (const std::string& mate : mates->second)
    if (const auto library = loading.resolver.libraries().open(mate);
        library && (*library)->dynamic.has_soname && (*library)->dynamic.soname == soname)
      return mate;
  return "";
}

// torch's stable C functions (torch/csrc/inductor/aoti_torch/c/shim.h) are made for files that are not
// linked with torch: their package loads it globally first, or not at all. C++ names of torch are no such
// offer: a file that has them and is not linked with torch was built wrong.
template <class Offer>
void offer_torch(Loading& loading, const AuditedSymbol& symbol, const Offer& offer) {
  if (symbol.owner != "torch" || symbol.name.starts_with("_Z")) return;
  for (const Library& torch : loading.snapshot.torch.value.libraries)
    if (const auto library = loading.resolver.libraries().open(torch.path);
        library && (*library)->symbols.exports(elf::SymbolQuery(symbol.name)))
      return offer(torch.path);
}

// Installed files that could settle what is missing, and were not loaded yet. While a library is missing,
// names are not looked at: they may come with it.
std::vector<std::string> candidates(Loading& loading, const AuditedFile& file, const Attempt& lacking) {
  std::set<std::string> found;
  const auto offer = [&](const std::string& path) {
    if (path != file.path && std::ranges::find(file.settled_by, path) == file.settled_by.end())
      found.insert(path);
  };
  for (const AuditedLibrary& library : lacking.libraries)
    if (const auto at = find_installed(loading, library.soname, file.distribution); !at.empty()) offer(at);
  if (!found.empty() || !lacking.libraries.empty()) return {found.begin(), found.end()};
  for (const AuditedSymbol& symbol : lacking.symbols) offer_torch(loading, symbol, offer);
  const auto mates = loading.installed.by_owner.find(file.distribution);
  if (mates == loading.installed.by_owner.end()) return {found.begin(), found.end()};
  for (const AuditedSymbol& symbol : lacking.symbols)
    for (const std::string& mate : mates->second)
      if (const auto library = loading.resolver.libraries().open(mate);
          library && (*library)->symbols.exports(elf::SymbolQuery(symbol.name))) {
        offer(mate);
        break;
      }
  return {found.begin(), found.end()};
}

// Sets flipped_exported_by: the same name with the other string ABI, in a library of torch.
void explain(Loading& loading, const AuditedFile& file, std::vector<AuditedSymbol>& symbols) {
  std::vector<MissingSymbol> missing;
  for (const AuditedSymbol& symbol : symbols) {
    missing.emplace_back();
    missing.back().name = symbol.name;
    missing.back().version = symbol.version;
  }
  if (missing.empty() || !file.uses_torch) return;
  std::vector<std::shared_ptr<const elf::ElfLibrary>> torch;
  for (const Library& library : loading.snapshot.torch.value.libraries)
    if (const auto opened = loading.resolver.libraries().open(library.path)) torch.push_back(*opened);
  explain_missing_symbols(Extension{}, torch, missing);
  for (std::size_t i = 0; i < symbols.size(); ++i)
    symbols[i].flipped_exported_by = missing[i].flipped_exported_by;
}

// Loads the file, and again behind the libraries that could settle what is missing, until nothing more is
// found. Each round starts from a copy of the base process; the candidates are loaded globally, as
// ctypes.CDLL with RTLD_GLOBAL does.
void resolve(Loading& loading, AuditedFile& file) {
  if (!loading.resolver.failure().empty()) {
    file.resolution_note = loading.resolver.failure();
    return;
  }
  if (file.uses_torch &&
      (!loading.resolver.torch_note().empty() || !loading.resolver.torch_missing().empty())) {
    file.resolution_note =
        message("torch itself does not load: {}", loading.resolver.torch_missing().empty()
                                                      ? loading.resolver.torch_note()
                                                      : in_words(loading.resolver.torch_missing().front()));
    return;
  }
  file.resolved = true;
  const elf::ProcessImage& base = file.uses_torch ? loading.resolver.with_torch() : loading.resolver.bare();
  Attempt last = try_loading(loading, base, file.path);
  Attempt now = last;
  for (int round = 0; round < kRounds && !now.complete(); ++round) {
    const auto more = candidates(loading, file, now);
    if (more.empty()) break;
    file.settled_by.insert(file.settled_by.end(), more.begin(), more.end());
    elf::ProcessImage process = base;
    for (const std::string& path : file.settled_by) process.load(path, process.python_object(), true);
    now = try_loading(loading, process, file.path);
  }
  if (!now.failure.empty()) {
    file.resolved = false;
    file.resolution_note = now.failure;
  }
  explain(loading, file, now.symbols);
  file.missing_libraries = std::move(now.libraries);
  file.missing_symbols = std::move(now.symbols);
  file.unmet_versions = std::move(now.versions);
  file.executable_stack = std::move(now.executable_stack);
}

// "" where the interpreter cannot be read. Asked for only when the first extension is met.
const std::string& machine_of_interpreter(Loading& loading) {
  if (loading.machine) return *loading.machine;
  const auto program = loading.resolver.libraries().open(loading.snapshot.python.value.executable);
  return loading.machine.emplace(program ? elf::machine_name((*program)->image.identity()) : "");
}

// A file that the loader would refuse. True where its name says that it is an extension.
bool describe_broken(const Loading& loading, AuditedFile& file, bool tagged) {
  auto source = loading.host.open(file.path);
  const elf::FileState state = source ? elf::file_state(std::shared_ptr<const ByteSource>(*std::move(source)))
                                      : elf::state_of_failure(source.error());
  file.file_state = state.state == "elf" ? "damaged" : state.state;
  file.file_detail = state.detail.empty() ? message("the loader's tables are unusable") : state.detail;
  file.machine = state.machine;
  return tagged;  // a plain .so that is no library may be anything: a linker script, test data
}

// Fills `file`. False for a shared library that is not an extension; such a file is only counted.
bool examine(Loading& loading, AuditScope scope, AuditedFile& file) {
  const bool only_linked = scope == AuditScope::Linked;
  const std::string name = path_basename(file.path);
  const bool tagged = has_python_tag(name);
  file.not_for_this_python = why_not_for_this_python(loading.snapshot.python.value, name);
  if (!file.not_for_this_python.empty()) return true;
  // "libx.so" without a Python tag is an extension only where it registers operators of torch.
  const bool plain_library = !tagged && name.starts_with("lib");
  if (!tagged && !name.ends_with(".so")) return false;
  const auto library = loading.resolver.libraries().open(file.path);
  if (!library) return !plain_library && describe_broken(loading, file, tagged);
  file.file_state = "elf";
  file.machine = elf::machine_name((*library)->image.identity());
  const auto undefined = (*library)->symbols.undefined();
  const std::string& torch = loading.snapshot.torch.value.location;  // what lies in it is loaded with torch
  const bool of_torch = !torch.empty() && file.path.starts_with(torch + "/");
  if (plain_library && (of_torch || !undefined || !makes_operators(*undefined))) return false;
  const bool links_torch = uses_torch(**library, undefined);
  if (only_linked && !links_torch && !links_cuda(**library)) return false;
  file.uses_torch = loading.snapshot.torch.present() && links_torch;
  const std::string leaf = name.substr(0, name.find('.'));
  if (only_linked && links_torch && !file.uses_torch) {
    file.resolution_note = message("it links PyTorch, which is not installed for this Python");
    return true;
  }
  if (!tagged && !plain_library && !file.uses_torch &&
      !(*library)->symbols.exports(elf::SymbolQuery("PyInit_" + leaf)))
    return false;
  // Packages carry files for other machines as data; one that is named for this Python was meant to load.
  if (file.machine != machine_of_interpreter(loading)) return tagged;
  if (file.uses_torch) file.built_for = inspect_extension(loading.host, file.path).built_for;
  resolve(loading, file);
  return true;
}

bool is_asked_for(const std::vector<AskedPackage>& packages, const std::string& path) {
  return std::ranges::any_of(
      packages, [&](const AskedPackage& package) { return path.starts_with(package.path + "/"); });
}

// torch's own files are read by its probe; NVIDIA's wheels contain libraries, not extensions; the modules
// under diagnosis have checks of their own.
bool is_examined_already(const Snapshot& snapshot, const std::string& path) {
  const std::string& torch = snapshot.torch.value.location;
  if (!torch.empty() && path.starts_with(torch + "/")) return true;
  if (path.find("/nvidia/") != std::string::npos) return true;
  return std::ranges::any_of(snapshot.extensions.value,
                             [&](const Extension& file) { return file.path == path; });
}

Audit audit_files(Loading& loading, AuditScope scope, const AuditProgress& progress) {
  Audit audit;
  if (scope == AuditScope::Packages)
    for (const AskedPackage& package : loading.snapshot.packages_asked)
      audit.packages.push_back(package.name);
  audit.folders = loading.installed.folders;
  audit.unreadable = loading.installed.unreadable;
  std::size_t done = 0;
  for (const std::string& path : loading.installed.files) {
    if (progress) progress(done++, loading.installed.files.size());
    if (scope == AuditScope::Packages && !is_asked_for(loading.snapshot.packages_asked, path)) continue;
    if (scope == AuditScope::Linked && is_examined_already(loading.snapshot, path)) continue;
    AuditedFile file;
    file.path = path;
    if (const auto owner = loading.installed.owners.find(file.path); owner != loading.installed.owners.end())
      file.distribution = owner->second;
    if (!examine(loading, scope, file)) {
      ++audit.libraries;
      continue;
    }
    audit.files.push_back(std::move(file));
  }
  return audit;
}

}  // namespace

Probed<Audit> probe_audit(const Host& host, const Snapshot& so_far, AuditScope scope,
                          const AuditProgress& progress) {
  if (!so_far.python.present())
    return Probed<Audit>::failed(message("no Python to look at: {}", so_far.python.note));
  Loading loading{host, so_far, find_installed_libraries(host, so_far), {host, so_far}, {}, {}};
  return Probed<Audit>::of(audit_files(loading, scope, progress));
}

}  // namespace scankit::probes

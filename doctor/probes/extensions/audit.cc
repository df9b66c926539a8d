// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/extensions/audit.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/elf/file_state.h"
#include "doctor/elf/mangling.h"
#include "doctor/probes/extensions/audit_files.h"
#include "doctor/probes/extensions/extension_resolve.h"
#include "doctor/probes/extensions/extensions.h"

// An audit is static. A file that lacks something is tried again with installed libraries loaded first, as
// its package may do by ctypes (settled_by); what is missing even then is the answer. try_suspects() of
// imports/observed.h then really loads the files that fail here.
namespace scankit {
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
  std::string failure;
  std::vector<AuditedLibrary> libraries;
  std::vector<AuditedSymbol> symbols;
  std::vector<AuditedVersion> versions;
  bool complete() const {
    return failure.empty() && libraries.empty() && symbols.empty() && versions.empty();
  }
};

class Auditor {
 public:
  Auditor(const Host& host, const Snapshot& so_far)
      : host_(host),
        so_far_(so_far),
        installed_(find_installed_libraries(host, so_far)),
        resolver_(host, so_far) {}

  Audit run(AuditScope scope, const AuditProgress& progress) {
    Audit audit;
    only_linked_ = scope == AuditScope::Linked;
    if (scope == AuditScope::Packages)
      for (const AskedPackage& package : so_far_.packages_asked) audit.packages.push_back(package.name);
    audit.folders = installed_.folders;
    audit.unreadable = installed_.unreadable;
    std::size_t done = 0;
    for (const std::string& path : installed_.files) {
      if (progress) progress(done++, installed_.files.size());
      if (scope == AuditScope::Packages && !is_asked_for(path)) continue;
      if (only_linked_ && is_examined_already(path)) continue;
      AuditedFile file;
      file.path = path;
      if (const auto owner = installed_.owners.find(file.path); owner != installed_.owners.end())
        file.distribution = owner->second;
      if (!take(file)) {
        ++audit.libraries;
        continue;
      }
      audit.files.push_back(std::move(file));
    }
    return audit;
  }

 private:
  bool is_asked_for(const std::string& path) const {
    return std::ranges::any_of(so_far_.packages_asked, [&](const AskedPackage& package) {
      return path.starts_with(package.path + "/");
    });
  }

  // torch's own files are read by its probe; NVIDIA's wheels contain libraries, not extensions; the modules
  // under diagnosis have checks of their own.
  bool is_examined_already(const std::string& path) const {
    const std::string& torch = so_far_.torch.value.location;
    if (!torch.empty() && path.starts_with(torch + "/")) return true;
    if (path.find("/nvidia/") != std::string::npos) return true;
    return std::ranges::any_of(so_far_.extensions.value,
                               [&](const Extension& file) { return file.path == path; });
  }

  static bool links_cuda(const ElfLibrary& library) {
    return std::ranges::any_of(library.dynamic.needed, is_cuda_soname);
  }

  // Fills `file`. False for a shared library that is not an extension; such a file is only counted.
  bool take(AuditedFile& file) {
    const std::string name = path_basename(file.path);
    const bool tagged = has_python_tag(name);
    file.not_for_this_python = why_not_for_this_python(so_far_.python.value, name);
    if (!file.not_for_this_python.empty()) return true;
    // "libx.so" without a Python tag is an extension only where it registers operators of torch.
    const bool plain_library = !tagged && name.starts_with("lib");
    if (!tagged && !name.ends_with(".so")) return false;
    const auto library = resolver_.libraries().open(file.path);
    if (!library) return !plain_library && take_broken(file, tagged);
    file.file_state = "elf";
    file.machine = machine_name((*library)->image.identity());
    const auto undefined = (*library)->symbols.undefined();
    const std::string& torch = so_far_.torch.value.location;  // what lies in it is loaded with torch
    const bool of_torch = !torch.empty() && file.path.starts_with(torch + "/");
    if (plain_library && (of_torch || !undefined || !makes_operators(*undefined))) return false;
    const bool links_torch = uses_torch(**library, undefined);
    if (only_linked_ && !links_torch && !links_cuda(**library)) return false;
    file.uses_torch = so_far_.torch.present() && links_torch;
    const std::string leaf = name.substr(0, name.find('.'));
    if (only_linked_ && links_torch && !file.uses_torch) return wants_torch(file);
    if (!tagged && !plain_library && !file.uses_torch &&
        !(*library)->symbols.exports(SymbolQuery("PyInit_" + leaf)))
      return false;
    if (machine_.empty()) machine_ = machine_of_interpreter();
    // Packages carry files for other machines as data; one that is named for this Python was meant to load.
    if (file.machine != machine_) return tagged;
    if (file.uses_torch) file.built_for = inspect_extension(host_, file.path).built_for;
    resolve(file);
    return true;
  }

  bool wants_torch(AuditedFile& file) const {
    file.resolution_note = say("it links PyTorch, which is not installed for this Python");
    return true;
  }

  // A file that the loader would refuse. True where its name says that it is an extension.
  bool take_broken(AuditedFile& file, bool tagged) {
    auto source = host_.open(file.path);
    const FileState state = source ? file_state(std::shared_ptr<const ByteSource>(*std::move(source)))
                                   : state_of_failure(source.error());
    file.file_state = state.state == "elf" ? "damaged" : state.state;
    file.file_detail = state.detail.empty() ? say("the loader's tables are unusable") : state.detail;
    file.machine = state.machine;
    return tagged;  // a plain .so that is no library may be anything: a linker script, test data
  }

  // "" where the interpreter cannot be read. Asked for only when the first extension is met.
  std::string machine_of_interpreter() {
    const auto program = resolver_.libraries().open(so_far_.python.value.executable);
    return program ? machine_name((*program)->image.identity()) : "";
  }

  // By its needs, or by a C++ name of torch's. A C name is not enough: see offer_torch().
  static bool uses_torch(const ElfLibrary& library, const Result<std::vector<UndefinedSymbol>>& undefined) {
    if (std::ranges::any_of(library.dynamic.needed, is_libtorch_or_libc10)) return true;
    return undefined && std::ranges::any_of(*undefined, [](const UndefinedSymbol& symbol) {
             return symbol.name.starts_with("_Z") && symbol_owner(symbol.name, symbol.version) == "torch";
           });
  }

  // torch.ops.load_library takes a path: libtorchaudio.so is meant to be loaded by itself.
  static bool makes_operators(const std::vector<UndefinedSymbol>& undefined) {
    return std::ranges::any_of(
        undefined, [](const UndefinedSymbol& symbol) { return registers_operators(symbol.name); });
  }

  // Loads the file, and again behind the libraries that could settle what is missing, until nothing more is
  // found. Each round starts from a copy of the base process; the candidates are loaded globally, as
  // ctypes.CDLL with RTLD_GLOBAL does.
  void resolve(AuditedFile& file) {
    if (!resolver_.failure().empty()) {
      file.resolution_note = resolver_.failure();
      return;
    }
    if (file.uses_torch && (!resolver_.torch_note().empty() || !resolver_.torch_missing().empty())) {
      file.resolution_note = say(
          "torch itself does not load: {}",
          (resolver_.torch_missing().empty() ? resolver_.torch_note() : resolver_.torch_missing().front()));
      return;
    }
    file.resolved = true;
    const ProcessImage& base = file.uses_torch ? resolver_.with_torch() : resolver_.bare();
    Attempt last = attempt(base, file.path);
    Attempt now = last;
    for (int round = 0; round < kRounds && !now.complete(); ++round) {
      const auto more = candidates(file, now);
      if (more.empty()) break;
      file.settled_by.insert(file.settled_by.end(), more.begin(), more.end());
      ProcessImage process = base;
      for (const std::string& path : file.settled_by) process.load(path, process.python_object(), true);
      now = attempt(process, file.path);
    }
    if (!now.failure.empty()) {
      file.resolved = false;
      file.resolution_note = now.failure;
    }
    explain(file, now.symbols);
    file.missing_libraries = std::move(now.libraries);
    file.missing_symbols = std::move(now.symbols);
    file.unmet_versions = std::move(now.versions);
  }

  // Sets flipped_exported_by: the same name with the other string ABI, in a library of torch.
  void explain(const AuditedFile& file, std::vector<AuditedSymbol>& symbols) {
    std::vector<MissingSymbol> missing;
    for (const AuditedSymbol& symbol : symbols) {
      missing.emplace_back();
      missing.back().name = symbol.name;
      missing.back().version = symbol.version;
    }
    if (missing.empty() || !file.uses_torch) return;
    std::vector<std::shared_ptr<const ElfLibrary>> torch;
    for (const Library& library : so_far_.torch.value.libraries)
      if (const auto opened = resolver_.libraries().open(library.path)) torch.push_back(*opened);
    explain_missing_symbols(Extension{}, torch, missing);
    for (std::size_t i = 0; i < symbols.size(); ++i)
      symbols[i].flipped_exported_by = missing[i].flipped_exported_by;
  }

  // Installed files that could settle what is missing, and were not loaded yet. While a library is missing,
  // names are not looked at: they may come with it.
  std::vector<std::string> candidates(const AuditedFile& file, const Attempt& lacking) {
    std::set<std::string> found;
    const auto offer = [&](const std::string& path) {
      if (path != file.path && std::ranges::find(file.settled_by, path) == file.settled_by.end())
        found.insert(path);
    };
    for (const AuditedLibrary& library : lacking.libraries)
      if (const auto at = find_installed(library.soname, file.distribution); !at.empty()) offer(at);
    if (!found.empty() || !lacking.libraries.empty()) return {found.begin(), found.end()};
    for (const AuditedSymbol& symbol : lacking.symbols) offer_torch(symbol, offer);
    const auto mates = installed_.by_owner.find(file.distribution);
    if (mates == installed_.by_owner.end()) return {found.begin(), found.end()};
    for (const AuditedSymbol& symbol : lacking.symbols)
      for (const std::string& mate : mates->second)
        if (const auto library = resolver_.libraries().open(mate);
            library && (*library)->symbols.exports(SymbolQuery(symbol.name))) {
          offer(mate);
          break;
        }
    return {found.begin(), found.end()};
  }

  // torch's stable C functions (torch/csrc/inductor/aoti_torch/c/shim.h) are made for files that are not
  // linked with torch: their package loads it globally first, or not at all. C++ names of torch are no such
  // offer: a file that has them and is not linked with torch was built wrong.
  template <class Offer>
  void offer_torch(const AuditedSymbol& symbol, const Offer& offer) {
    if (symbol.owner != "torch" || symbol.name.starts_with("_Z")) return;
    for (const Library& torch : so_far_.torch.value.libraries)
      if (const auto library = resolver_.libraries().open(torch.path);
          library && (*library)->symbols.exports(SymbolQuery(symbol.name)))
        return offer(torch.path);
  }

  // By file name; by soname, where a wheel's repair gave the file another name, in the same distribution.
  std::string find_installed(const std::string& soname, const std::string& distribution) {
    std::string other;
    for (auto [it, end] = installed_.by_name.equal_range(soname); it != end; ++it) {
      const auto owner = installed_.owners.find(it->second);
      if (owner != installed_.owners.end() && owner->second == distribution) return it->second;
      other = it->second;
    }
    if (!other.empty()) return other;
    const auto mates = installed_.by_owner.find(distribution);
    if (mates == installed_.by_owner.end()) return "";
    for (const std::string& mate : mates->second)
      if (const auto library = resolver_.libraries().open(mate);
          library && (*library)->dynamic.has_soname && (*library)->dynamic.soname == soname)
        return mate;
    return "";
  }

  Attempt attempt(const ProcessImage& base, const std::string& path) {
    Attempt attempt;
    ProcessImage process = base;
    const LoadResult loaded = process.load(path, process.python_object(), false);
    attempt.failure = loaded.failure;
    if (loaded.object < 0) return attempt;
    for (const UnfoundLibrary& unfound : loaded.missing)
      if (attempt.libraries.size() < kListLimit)
        attempt.libraries.push_back({unfound.name, path_normalize(unfound.needed_by)});
    for (const UnmetNeed& unmet : process.unmet_versions(loaded.added))
      if (attempt.versions.size() < kListLimit)
        attempt.versions.push_back({path_normalize(process.object(unmet.provider).path), unmet.version,
                                    path_normalize(process.object(unmet.object).path)});
    // Names of a library that is not there are missing with it.
    const bool only_own = !attempt.libraries.empty();
    for (const int object : loaded.added)
      if (!only_own) take_symbols(process, loaded, object, attempt);
    return attempt;
  }

  // import calls dlopen with RTLD_NOW: every object that comes along is bound at once, not the module alone.
  void take_symbols(const ProcessImage& process, const LoadResult& loaded, int object, Attempt& attempt) {
    const ElfLibrary& library = *process.object(object).library;
    for (const UndefinedSymbol& symbol : undefined_of(library)) {
      if (process.provider_of(SymbolQuery(symbol), loaded.list) >= 0) continue;
      if (attempt.symbols.size() >= kListLimit) return;
      AuditedSymbol missing{symbol.name, symbol.version, symbol_owner(symbol.name, symbol.version),
                            path_normalize(process.object(object).path), ""};
      attempt.symbols.push_back(std::move(missing));
    }
  }

  // The strong ones. Read once, however many extensions bring the library.
  const std::vector<UndefinedSymbol>& undefined_of(const ElfLibrary& library) {
    const auto known = undefined_.find(&library);
    if (known != undefined_.end()) return known->second;
    std::vector<UndefinedSymbol> strong;
    if (auto all = library.symbols.undefined()) {
      strong = *std::move(all);
      std::erase_if(strong, [](const UndefinedSymbol& symbol) { return symbol.weak; });
    }
    return undefined_.emplace(&library, std::move(strong)).first->second;
  }

  const Host& host_;
  const Snapshot& so_far_;
  const InstalledLibraries installed_;
  bool only_linked_ = false;
  ExtensionResolver resolver_;
  std::string machine_;  // of the interpreter; "" until machine_of_interpreter() was asked
  std::unordered_map<const ElfLibrary*, std::vector<UndefinedSymbol>> undefined_;
};

}  // namespace

Probed<Audit> probe_audit(const Host& host, const Snapshot& so_far, AuditScope scope,
                          const AuditProgress& progress) {
  if (!so_far.python.present())
    return Probed<Audit>::failed(say("no Python to look at: {}", so_far.python.note));
  return Probed<Audit>::of(Auditor(host, so_far).run(scope, progress));
}

}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/version.h"
#include "doctor/elf/mangling.h"
#include "doctor/probes/extensions/extension_resolve.h"
#include "doctor/probes/extensions/extensions.h"
#include "doctor/probes/target/target_resolve.h"
#include "doctor/torch_abi/symbol_index.h"

namespace scankit::probes {
namespace {

using State = NameAnswer::State;
using Found = TargetLibrary::State;

// "2.6.0a0+git..." and "2.6.0.dev2025" are no release: their names are those of a day between two.
bool is_release(const std::string& version) {
  const std::string number = version.substr(0, version.find('+'));
  return number.find_first_not_of("0123456789.") == std::string::npos && !number.empty();
}

NameAnswer provided(Message on_trust = {}) { return {State::Provided, {}, std::move(on_trust)}; }
NameAnswer open(Message why) { return {State::Open, {}, std::move(why)}; }
NameAnswer missing(const elf::UndefinedSymbol& symbol, const std::string& owner) {
  NameAnswer answer{State::Missing, {}, ""};
  answer.missing.name = symbol.name;
  answer.missing.version = symbol.version;
  answer.missing.demangled = elf::demangle(symbol.name);
  answer.missing.owner = owner;
  return answer;
}

bool speaks_of_cuda(const std::string& name) {
  return name.find("cuda") != std::string::npos || name.find("CUDA") != std::string::npos ||
         name.find("Cuda") != std::string::npos;
}

// GCC's release by the newest GLIBCXX_3.4.N of its libstdc++ (GCC manual, "ABI Policy and Guidelines"): {N,
// GCC}. An N between two rows counts as the older release. 0 for an unknown version.
unsigned gcc_of_libstdcxx(const std::string& glibcxx) {
  constexpr std::array<std::pair<unsigned, unsigned>, 12> kRows{{{18, 4},
                                                                 {20, 4},
                                                                 {21, 5},
                                                                 {22, 6},
                                                                 {24, 7},
                                                                 {25, 8},
                                                                 {28, 10},
                                                                 {29, 11},
                                                                 {30, 12},
                                                                 {32, 13},
                                                                 {33, 14},
                                                                 {34, 15}}};
  const auto version = Version::parse(glibcxx);
  if (!version || version->part(0) != 3 || version->part(1) != 4) return 0;
  unsigned gcc = 0;
  for (const auto& [last, release] : kRows)
    if (version->part(2) >= last) gcc = release;
  return gcc;
}

}  // namespace

// The column of the symbol index is that of the minor release: patches export the same names.
TargetSymbols::TargetSymbols(const Snapshot& machine, const TargetLibraries& libraries,
                             const torch_abi::SymbolIndex& symbol_index)
    : machine_(machine), libraries_(libraries), index_(symbol_index) {
  const Torch& torch = machine.torch.value;
  const auto version = Version::parse(torch.version);
  if (!machine.torch.present()) {
    release_note_ = machine.torch.note;
  } else if (!version || !is_release(torch.version)) {
    release_note_ = message("torch {} is not a release whose symbols are known", torch.version);
  } else {
    const std::string minor = std::to_string(version->part(0)) + "." + std::to_string(version->part(1));
    for (std::size_t i = 0; i < symbol_index.releases().size(); ++i)
      if (symbol_index.releases()[i].minor == minor) release_ = static_cast<int>(i);
    if (release_ < 0)
      release_note_ = message("the symbols of torch {} are not in the symbol index", torch.version);
  }
}

// Damaged ones are none: a name is missing only from a table that was read.
const std::set<std::string>* TargetSymbols::names_of(const ExportTable& table) {
  auto known = names_.find(&table);
  if (known == names_.end()) {
    const auto names = unpack_names(table.names);
    known = names_.emplace(&table, std::nullopt).first;
    if (names) known->second.emplace(names->begin(), names->end());
  }
  return known->second ? &*known->second : nullptr;
}

bool TargetSymbols::offers(const ExportTable& table, const elf::UndefinedSymbol& symbol) {
  const std::set<std::string>* names = names_of(table);
  if (names == nullptr || !names->contains(symbol.name)) return false;
  // A library without versions answers any (glibc elf/dl-lookup.c, do_lookup_x).
  return symbol.version.empty() || table.versions.empty() ||
         std::ranges::find(table.versions, symbol.version) != table.versions.end();
}

// The loader's scope: what is global, then the file's own needs. That decides whatever the name is. One
// library without a readable table leaves a name open that the others lack.
NameAnswer TargetSymbols::ask_tables(const elf::UndefinedSymbol& symbol, const TargetScope& scope) {
  bool all_known = true;
  for (const ExportTable* table : libraries_.global()) {
    if (offers(*table, symbol)) return provided();
    all_known = all_known && names_of(*table) != nullptr;
  }
  for (const auto& [soname, library] : scope.by_soname) {
    if (library.table != nullptr && offers(*library.table, symbol)) return provided();
    const bool read = library.table != nullptr && names_of(*library.table) != nullptr;
    all_known = all_known && (read || library.own != nullptr);
  }
  if (!all_known) return open("");
  NameAnswer answer = missing(symbol, elf::symbol_owner(symbol.name, symbol.version));
  if (answer.missing.owner != "torch") return answer;
  for (const Library& library : machine_.torch.value.libraries)
    if (const ExportTable* table = libraries_.table(path_basename(library.path)))
      if (offers(*table, symbol)) answer.missing.exported_by_torch = library.path;
  explain_torch(symbol.name, answer.missing);
  return answer;
}

// The same function with the other std::string, or with other parameters, in the release of that machine.
void TargetSymbols::explain_torch(const std::string& name, MissingSymbol& missing) const {
  if (release_ < 0 || !missing.exported_by_torch.empty()) return;
  const auto has = [&](std::uint64_t set) { return (set >> release_ & 1) != 0; };
  const auto known = index_.find(name);
  const bool by_twin = known && has(known->api());
  if (by_twin || (!known && has(index_.find_api(name)))) {
    missing.flipped_exported_by = english(message("torch {}", machine_.torch.value.version));
    return;
  }
  const std::string prefix = elf::overload_prefix(name);
  if (prefix.empty()) return;
  const std::string function = elf::qualified_name(elf::without_string_abi(missing.demangled));
  for (const std::string& other : index_.with_prefix(prefix, kCandidateLimit)) {
    const auto set = index_.find(other);
    const std::string text = elf::demangle(other);
    if (!set || !has(set->exact) || elf::qualified_name(elf::without_string_abi(text)) != function) continue;
    if (missing.near.size() < kNearLimit) missing.near.push_back(text);
  }
}

// The symbol index lists each release with the string ABI of its own wheels. For a torch with the other one
// (conda, vendors) the `twin` sets tell which names with a string it exports.
NameAnswer TargetSymbols::ask_torch(const elf::UndefinedSymbol& symbol, const TargetScope& scope) {
  if (machine_.torch.state == ProbeState::Absent) return missing(symbol, "torch");
  if (release_ < 0) return open(release_note_);
  if (!torch_abi::tells_a_release(symbol.name, symbol.version))
    return open(message("{} is a symbol that differs between builds of one torch release",
                        elf::demangle(symbol.name)));
  const torch_abi::IndexedRelease& release = index_.releases()[static_cast<std::size_t>(release_)];
  const Torch& torch = machine_.torch.value;
  const bool own_strings = torch.string_abi != "old" && torch.string_abi != "new"
                               ? true
                               : (torch.string_abi == "new") == release.new_strings;
  const auto has = [&](std::uint64_t set) { return (set >> release_ & 1) != 0; };
  const auto known = index_.find(symbol.name);
  const bool strings = elf::string_abi_in(elf::demangle(symbol.name)) != elf::StringAbi::Neither ||
                       (known && known->twin != 0) || symbol.name.find("B5cxx11") != std::string::npos;
  bool there = known && has(known->exact);
  if (strings && !own_strings) there = known ? has(known->twin) : has(index_.find_api(symbol.name));
  // The index does not say which of torch's libraries exports a name. It is taken to be reached where the
  // file needs the libraries that could have it.
  const auto in_scope = [&](const char* soname) {
    const auto library = scope.by_soname.find(soname);
    return library != scope.by_soname.end() && library->second.state == Found::Found;
  };
  const bool linked = in_scope("libtorch_cpu.so") && in_scope("libc10.so") &&
                      (torch.cuda.empty() || !speaks_of_cuda(symbol.name) ||
                       (in_scope("libtorch_cuda.so") && in_scope("libc10_cuda.so"))) &&
                      (!symbol.name.starts_with("THP") || in_scope("libtorch_python.so"));
  if (there && linked) return provided();
  const bool core = in_scope("libc10.so") && elf::outermost_scope(symbol.name) == "c10";
  if (there && core && !speaks_of_cuda(symbol.name))
    return provided(message("{} is exported by torch {}, and assumed to be in libc10.so",
                            elf::demangle(symbol.name), torch.version));
  if (there)
    return open(
        message("whether {} is in a torch library that the file is linked to", elf::demangle(symbol.name)));
  NameAnswer answer = missing(symbol, "torch");
  explain_torch(symbol.name, answer.missing);
  return answer;
}

// Names of one minor release do not change, and the stable ABI's never go: the tag is the promise, and
// python-tag-fits judges the tag.
NameAnswer TargetSymbols::ask_python(const TargetScope& scope) const {
  if (scope.tag == "abi3" || scope.tag.starts_with("cpython-") || scope.tag_is_promised) return provided();
  return open(message(
      "whether its Python symbols exist in Python {}: the file's name has no tag, and the snapshot contains "
      "no export tables",
      machine_.python.value.version));
}

// Nothing where neither a table nor a version of that machine decides it.
std::optional<bool> TargetSymbols::defines_version(const std::string& library,
                                                   const std::string& version) const {
  if (const ExportTable* table = libraries_.table(library))
    if (!table->versions.empty()) return std::ranges::find(table->versions, version) != table->versions.end();
  if (version == "GLIBC_ABI_DT_RELR") return defines_version(library, "GLIBC_2.36");
  const std::string newest = newest_version(version);
  if (newest.empty()) return std::nullopt;
  const auto have = Version::parse(newest), want = Version::parse(version.substr(version.rfind('_') + 1));
  if (!have || !want) return std::nullopt;
  return *have >= *want;
}

// GCC_ versions belong to libgcc, whose release is that of libstdc++; ".9" is above every minor of that GCC.
std::string TargetSymbols::newest_version(const std::string& wanted) const {
  const LibStdCxx& cxx = machine_.libstdcxx.value;
  if (wanted.starts_with("GLIBC_2."))
    return machine_.libc.present() && machine_.libc.value.kind == "glibc" ? machine_.libc.value.version : "";
  if (!machine_.libstdcxx.present()) return "";
  if (wanted.starts_with("GLIBCXX_3.")) return cxx.glibcxx_max;
  if (wanted.starts_with("CXXABI_1.")) return cxx.cxxabi_max;
  if (wanted.starts_with("GCC_"))
    if (const unsigned gcc = gcc_of_libstdcxx(cxx.glibcxx_max); gcc != 0) return std::to_string(gcc) + ".9";
  return "";
}

// A symbol with a version can only come from the library that the version names.
NameAnswer TargetSymbols::ask_versioned(const elf::UndefinedSymbol& symbol, const TargetScope& scope) const {
  if (const auto defined = defines_version(symbol.version_file, symbol.version)) {
    if (*defined) return provided();
    return missing(symbol, elf::symbol_owner(symbol.name, symbol.version));
  }
  const auto library = scope.by_soname.find(symbol.version_file);
  if (library == scope.by_soname.end() || library->second.state == Found::Open)
    return open("");  // the library's own line says it
  if (library->second.state == Found::Missing)
    return missing(symbol, elf::symbol_owner(symbol.name, symbol.version));
  return provided(
      message("the symbols of {} are derived from its soname: the snapshot contains no export "
              "tables",
              symbol.version_file));
}

// Libraries of the system, of torch and of CUDA: the file's author has no say in what these export.
static bool is_nobodys_own(const std::string& soname) {
  constexpr std::array<std::string_view, 15> kStarts{
      "libtorch", "libc10",  "libshm.so", "libstdc++.so", "libgcc_s.so", "libgomp",  "libpython",    "libcu",
      "libnv",    "libnccl", "libnpp",    "libcaffe2",    "libmkl",      "libiomp5", "libcheckpoint"};
  return is_glibc_library(soname) ||
         std::ranges::any_of(kStarts, [&](std::string_view start) { return soname.starts_with(start); });
}

// Linked into torch's libraries and exported by them, without
// being torch's own: the symbol index has none of it.
static bool torch_may_carry(const std::string& name) {
  if (!name.starts_with("_Z")) return true;
  constexpr std::array<std::string_view, 13> kScopes{"fbgemm", "onnx",    "onnx_torch", "tensorpipe", "gloo",
                                                     "google", "cutlass", "thrust",     "libkineto",  "mslk",
                                                     "sdp",    "nvtx",    "dnnl"};
  return std::ranges::find(kScopes, elf::outermost_scope(name)) != kScopes.end();
}

NameAnswer TargetSymbols::ask_others(const elf::UndefinedSymbol& symbol, const TargetScope& scope) const {
  const std::string owner = elf::symbol_owner(symbol.name, symbol.version);
  // Linked without the library at hand. torch's own libraries export what old libstdc++ lack of it.
  if (owner == "cuda" || owner == "libc" || owner == "libstdc++")
    return provided(message(
        "its unversioned symbols of {} are assumed to exist: the snapshot contains no export tables", owner));
  std::string strangers;
  for (const auto& [soname, library] : scope.by_soname) {
    if (library.own != nullptr || is_nobodys_own(soname)) continue;
    if (library.state == Found::Open) return open("");  // the library's own line says it
    if (library.state == Found::Found && strangers.empty()) strangers = soname;
  }
  if (torch_may_carry(symbol.name) && scope.by_soname.contains("libtorch_cpu.so")) {
    // python_variable.h declares it beside THPVariableClass, in every release of the symbol index.
    if (symbol.name == "ParameterClass" && scope.by_soname.contains("libtorch_python.so")) return provided();
    return open(
        message("whether {} is one of the third-party symbols that torch's libraries export: the snapshot "
                "contains no export tables",
                elf::demangle(symbol.name)));
  }
  if (strangers.empty()) return missing(symbol, owner);
  return open(message("whether {} exports {}: the snapshot contains no export tables", strangers,
                      elf::demangle(symbol.name)));
}

// From the strongest fact to the weakest: a file that came along, an export table, a symbol version, and
// then the rules for the owner of the name.
NameAnswer TargetSymbols::ask(const elf::UndefinedSymbol& symbol, const TargetScope& scope) {
  for (const auto& [soname, library] : scope.by_soname)
    if (library.own != nullptr && library.own->symbols.exports(elf::SymbolQuery(symbol))) return provided();
  if (libraries_.has_tables()) {
    NameAnswer answer = ask_tables(symbol, scope);
    if (answer.state != State::Open) return answer;
  }
  if (!symbol.version.empty()) return ask_versioned(symbol, scope);
  const std::string owner = elf::symbol_owner(symbol.name, symbol.version);
  if (owner == "torch") return ask_torch(symbol, scope);
  if (owner == "python") return ask_python(scope);
  return ask_others(symbol, scope);
}

}  // namespace scankit::probes

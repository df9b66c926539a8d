// SPDX-License-Identifier: Apache-2.0
#include "doctor/probes/extensions/extensions.h"

#include <elf.h>

#include <algorithm>
#include <map>
#include <set>

#include "doctor/base/files.h"
#include "doctor/base/message.h"
#include "doctor/base/say.h"
#include "doctor/base/version.h"
#include "doctor/elf/fatbin.h"
#include "doctor/elf/image.h"
#include "doctor/elf/mangling.h"
#include "doctor/probes/extensions/extension_resolve.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/torch_abi/infer_release.h"
#include "doctor/torch_abi/symbol_index.h"

namespace scankit::probes {
namespace {

// GLIBC_ABI_DT_RELR is no number: glibc 2.36 brought it.
std::string newest_need(const std::vector<elf::VersionNeed>& needs, std::string_view prefix) {
  std::optional<Version> newest;
  std::string text;
  for (const elf::VersionNeed& need : needs) {
    if (!need.name.starts_with(prefix)) continue;
    const std::string number = need.name == "GLIBC_ABI_DT_RELR" ? "2.36" : need.name.substr(prefix.size());
    const auto version = Version::parse(number);
    if (!version || (newest && *version <= *newest)) continue;
    newest = version;
    text = number;
  }
  return text;
}

// From the first of the libraries that are numbered by the CUDA major: libcudart.so.11.0, libcudart.so.12.
std::string cuda_major(const std::vector<std::string>& needed) {
  for (const char* stem :
       {"libcudart.so.", "libcublas.so.", "libcublasLt.so.", "libnvrtc.so.", "libnvJitLink.so."})
    for (const std::string& name : needed)
      if (name.starts_with(stem)) {
        const std::string number = name.substr(std::string_view(stem).size());
        return number.substr(0, number.find('.'));
      }
  return "";
}

bool is_torch_soname(const std::string& name) {
  return name.starts_with("libtorch") || name.starts_with("libc10") || name.starts_with("libcaffe2");
}

// Only names that torch owns count: the extension's own strings follow its compiler, whatever torch is.
// Looking for "Ss" first spares most names the demangling.
void take_symbols(const std::vector<elf::UndefinedSymbol>& symbols, Extension& copy) {
  bool any_old = false, any_new = false;
  for (const elf::UndefinedSymbol& symbol : symbols) {
    if (elf::symbol_owner(symbol.name, symbol.version) != "torch") continue;
    copy.uses_torch = true;
    copy.registers_ops |= registers_operators(symbol.name);
    if (symbol.name.find("cxx11") != std::string::npos)
      any_new = true;
    else if (symbol.name.find("Ss") != std::string::npos)
      any_old |= elf::string_abi_in(elf::demangle(symbol.name)) == elf::StringAbi::Old;
  }
  copy.string_abi = any_new ? "new" : any_old ? "old" : "neutral";
}

// One compiler wrote all packed images for one GPU: unpacking the first tells for all.
using AbiSeen = std::map<std::pair<unsigned, std::string>, unsigned>;
unsigned abi_of(const elf::FileBytes& file, const elf::FatbinEntry& entry, AbiSeen& seen) {
  if (entry.compression == "none") return elf::cubin_abi(file, entry);
  const auto [at, fresh] = seen.try_emplace({entry.sm, entry.compression}, 0);
  if (fresh) at->second = elf::cubin_abi(file, entry);
  return at->second;
}

// A damaged fatbin leaves `images` empty, and file_detail says why: the file itself may still load.
void take_images(const elf::Image& image, Extension& copy) {
  const auto entries = elf::find_device_images(image);
  if (!entries) {
    copy.file_detail = message("its device code cannot be read: {}", entries.error().message);
    return;
  }
  AbiSeen seen;
  for (const elf::FatbinEntry& entry : *entries) {
    DeviceImage found{entry.kind, entry.sm, entry.specific, "", entry.compression, entry.size};
    if (entry.kind == "ptx")
      found.isa = std::to_string(entry.isa_major) + "." + std::to_string(entry.isa_minor);
    // The one chip for which a compiler is known to be wrong.
    if (entry.kind == "cubin" && entry.sm == 103)
      found.toolkit = elf::cubin_compiler(image.file(), entry).toolkit;
    if (entry.kind == "cubin") found.elf_abi = abi_of(image.file(), entry, seen);
    copy.images.push_back(std::move(found));
  }
}

// `inits` has every PyInit_ function, so that a file with another module's name is recognized.
void take_inits(const elf::ElfLibrary& library, Extension& copy) {
  const std::string leaf = copy.module.substr(copy.module.rfind('.') + 1);
  copy.inits = library.symbols.exported_with_prefix({"PyInit_"}, 64);
  std::ranges::sort(copy.inits);
  // What Python 2 called: such a module is old, not misnamed.
  if (copy.inits.empty() && library.symbols.exports(elf::SymbolQuery("init" + leaf)))
    copy.inits.push_back("init" + leaf);
  copy.has_init = library.symbols.exports(elf::SymbolQuery("PyInit_" + leaf));
}

// The state of a file whose bytes are there and whose tables are not usable (Extension::file_state).
elf::FileState damaged(const Error& error) {
  if (error.code != Errc::Malformed && error.code != Errc::Unsupported) return elf::state_of_failure(error);
  return {"damaged", message("the tables that the loader uses are unusable: {}", error.message), ""};
}

// Sets `library` only where the file is ELF of a machine that is read further; a foreign one stays "elf".
elf::FileState open_file(const Host& host, Extension& copy, std::shared_ptr<const elf::ElfLibrary>& library) {
  auto source = host.open(copy.path);
  if (!source) return elf::state_of_failure(source.error());
  copy.size = (*source)->size();
  elf::FileState state = elf::file_state(std::shared_ptr<const ByteSource>(*std::move(source)));
  if (state.state != "elf" || (state.machine != "x86_64" && state.machine != "aarch64")) return state;
  auto opened = elf::open_library(host, copy.path);
  if (!opened) {
    elf::FileState worse = damaged(opened.error());
    worse.machine = state.machine;
    return worse;
  }
  library = *std::move(opened);
  if (library->image.identity().type != ET_DYN || !library->dynamic.present)
    return {"not-elf", message("an ELF file, but not a shared library"), state.machine};
  return state;
}

}  // namespace

// torch/library.h and torch/csrc/stable/library.h.
bool registers_operators(std::string_view symbol) {
  return symbol.starts_with("_ZN5torch7Library") || symbol.starts_with("aoti_torch_library_") ||
         symbol.find("RegisterOperators") != std::string_view::npos;
}

std::shared_ptr<const elf::ElfLibrary> inspect_file(const Host& host, Extension& copy) {
  std::shared_ptr<const elf::ElfLibrary> library;
  elf::FileState state = open_file(host, copy, library);
  copy.real_path = host.realpath(copy.path).value_or("");
  copy.file_state = std::move(state.state);
  copy.file_detail = std::move(state.detail);
  copy.machine = std::move(state.machine);
  if (copy.file_state != "elf" || !library) return nullptr;
  const auto undefined = library->symbols.undefined();
  if (!undefined) {
    copy.file_state = "damaged";
    copy.file_detail = undefined.error().message;
    return nullptr;
  }
  copy.needed = library->dynamic.needed;
  copy.soname = library->dynamic.soname;
  copy.rpath = library->dynamic.rpath;
  copy.runpath = library->dynamic.runpath;
  copy.build_id = elf::read_build_id(library->image);
  copy.uses_torch = std::ranges::any_of(copy.needed, is_torch_soname);
  copy.cuda_major = cuda_major(copy.needed);
  const std::vector<elf::VersionNeed>& needs = library->symbols.versions().needs();
  copy.glibc_min = newest_need(needs, "GLIBC_");
  copy.glibcxx_min = newest_need(needs, "GLIBCXX_");
  const auto internals = elf::find_texts(library->image, "__pybind11_internals_v", 1);
  if (!internals.empty()) copy.pybind_internals = internals[0];
  take_symbols(*undefined, copy);
  take_images(library->image, copy);
  take_inits(*library, copy);
  // Last, because it uses the facts above.
  copy.built_for = date_extension(copy, *undefined, library->image);
  return library;
}

Extension inspect_extension(const Host& host, const std::string& path) {
  Extension copy;
  copy.path = path;
  const std::string name = path_basename(path);
  copy.module = name.substr(0, name.find('.'));
  const auto first = name.find('.'), last = name.rfind('.');
  if (first != std::string::npos && last > first) copy.tag = name.substr(first + 1, last - first - 1);
  inspect_file(host, copy);
  copy.resolution_note = message("the file was examined by itself, without an environment");
  return copy;
}

namespace {

// "" where the interpreter cannot be read: then no file counts as made for another machine.
std::string machine_of_python(const Host& host, const Snapshot& so_far) {
  auto source = host.open(so_far.python.value.executable);
  if (!source) return "";
  const auto identity =
      elf::identify_elf(elf::FileBytes(std::shared_ptr<const ByteSource>(*std::move(source))));
  return identity ? elf::machine_name(*identity) : "";
}

}  // namespace

Probed<std::vector<Extension>> probe_extensions(const Host& host, const Snapshot& so_far,
                                                const std::vector<std::string>& modules,
                                                std::vector<TorchNeed>& torch_missing,
                                                std::vector<BindingMismatch>* torch_mismatches) {
  using Answer = Probed<std::vector<Extension>>;
  if (!so_far.python.present())
    return Answer::failed(message("no Python to look at: {}", so_far.python.note));
  FolderListings listings(host);
  // Before any module: what torch itself lacks is told apart from what a module lacks.
  ExtensionResolver resolver(host, so_far);
  torch_missing = resolver.torch_missing();
  if (torch_mismatches != nullptr) *torch_mismatches = mismatches_of_torch(host, so_far, resolver);
  const std::string machine = machine_of_python(host, so_far);

  std::vector<Extension> found;
  for (const std::string& module : modules) {
    for (Extension& copy : find_copies(host, so_far, module, listings)) {
      const auto library = inspect_file(host, copy);
      if (library != nullptr && (machine.empty() || copy.machine == machine)) {
        resolver.libraries().keep(library);
        resolver.resolve(copy);
        // Only for the copy that import takes: each search simulates more processes.
        if (copy.resolved && copy.selected)
          copy.mismatches = mismatches_of_module(host, so_far, resolver, copy.path);
      } else {
        copy.resolution_note = copy.file_state == "elf"
                                   ? message("built for {}, the interpreter for {}", copy.machine, machine)
                                   : message("the file is not a complete library: {}", copy.file_state);
      }
      found.push_back(std::move(copy));
    }
  }
  Answer answer = Answer::of(std::move(found));
  for (const Message& line : listings.unreadable()) answer.note = clauses_of({answer.note, line});
  return answer;
}

namespace {

// Reading one takes a millisecond or so; a dozen narrow as well as a hundred.
constexpr std::size_t kLibrariesRead = 24;

// The places in headers that its assertions name.
std::vector<std::string> header_lines_of(const elf::Image& image) {
  constexpr std::size_t kMost = 4096;
  std::set<std::string> lines;
  for (const std::string& text : elf::find_texts(image, torch_abi::kAssertionMark, kMost))
    if (std::string line = torch_abi::header_line(text); !line.empty()) lines.insert(std::move(line));
  return {lines.begin(), lines.end()};
}

}  // namespace

BuiltFor date_extension(const Extension& copy, const std::vector<elf::UndefinedSymbol>& undefined,
                        const elf::Image& image) {
  if (copy.uses_torch)
    return torch_abi::date_file(
        torch_abi::SymbolIndex::built_in(),
        {copy.path, undefined, copy.string_abi, copy.pybind_internals, copy.tag, copy.cuda_major,
         copy.glibc_min, comment_section(image), header_lines_of(image)});
  // Not worth the inflating of the symbol index.
  BuiltFor built_for;
  built_for.file = copy.path;
  built_for.string_abi = copy.string_abi;
  built_for.glibc_min = copy.glibc_min;
  built_for.cuda_major = copy.cuda_major;
  built_for.python_tag = copy.tag;
  built_for.why_not_narrower = message("the file uses no torch symbol");
  return built_for;
}

BuiltFor date_files_together(const std::string& name, const std::vector<BuiltFor>& files) {
  const bool any = std::ranges::any_of(files, [](const BuiltFor& file) { return file.torch_names > 0; });
  return torch_abi::date_together(any ? torch_abi::SymbolIndex::built_in() : torch_abi::SymbolIndex(), name,
                                  files);
}

std::vector<BuiltFor> date_distributions(const Host& host, const std::vector<Distribution>& installed,
                                         const std::vector<Extension>& copies) {
  std::map<std::string, std::vector<BuiltFor>> groups;
  // A copy that import passes over is a leftover of another build.
  for (const Extension& copy : copies)
    if (copy.selected && !copy.distribution.empty() && copy.built_for.torch_names > 0)
      groups[copy.distribution].push_back(copy.built_for);
  std::vector<BuiltFor> answers;
  for (auto& [name, files] : groups) {
    const Distribution* distribution = find_distribution(installed, name);
    // An editable install has no RECORD that lists what it built.
    if (distribution == nullptr || distribution->editable) continue;
    for (const std::string& path : shared_libraries_of(host, *distribution)) {
      if (files.size() >= kLibrariesRead) break;
      if (std::ranges::find(files, path, &BuiltFor::file) != files.end()) continue;
      const Extension other = inspect_extension(host, path);
      if (other.built_for.torch_names > 0) files.push_back(other.built_for);
    }
    answers.push_back(date_files_together(name, files));
  }
  return answers;
}

}  // namespace scankit::probes

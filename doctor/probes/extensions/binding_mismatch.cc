// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <optional>

#include "doctor/base/files.h"
#include "doctor/base/text.h"
#include "doctor/elf/process_image.h"
#include "doctor/probes/extensions/extension_resolve.h"

namespace scankit::probes {
namespace {

constexpr std::size_t kMostMismatches = 32;  // one library of another release may lack a thousand names
constexpr const char* kVariable = "LD_LIBRARY_PATH";

// "libnvshmem_host.so.3" -> "nvshmem": the word that the library's own C names begin with.
std::string word_of_library(const std::string& soname) {
  std::string stem = soname.substr(0, soname.find(".so"));
  if (stem.starts_with("lib")) stem.erase(0, 3);
  return lowered(stem.substr(0, stem.find('_')));
}

// Which of what `object` needs the name must have come from: the file that its version names, else the one
// whose word the name begins with. NCCL, cuSPARSELt and NVSHMEM have no symbol versions.
int should_have_it(const elf::ProcessImage& process, int object, const elf::UndefinedSymbol& symbol) {
  if (!symbol.version_file.empty()) return process.find(symbol.version_file);
  const std::string name = lowered(symbol.name);
  int best = -1;
  std::size_t longest = 3;  // words of three letters or fewer would match by chance
  for (const int needed : process.object(object).dependencies) {
    const elf::Dynamic& dynamic = process.object(needed).library->dynamic;
    const std::string word =
        word_of_library(dynamic.has_soname ? dynamic.soname : path_basename(process.object(needed).path));
    if (word.size() <= longest || !name.starts_with(word)) continue;
    longest = word.size();
    best = needed;
  }
  // A library that is not there at all is another answer:
  // libcusparseLt's names begin with cuSPARSE's word too.
  for (const std::string& soname : process.object(object).library->dynamic.needed) {
    const std::string word = word_of_library(soname);
    if (word.size() > longest && name.starts_with(word)) return -1;
  }
  return best;
}

// Collects the mismatches of one process; added to by look(), completed by compare_without_variable().
class Finder {
 public:
  Finder(const Host& host, const Snapshot& so_far, elf::LibraryCache& libraries)
      : host_(host), so_far_(so_far), libraries_(libraries) {}

  // `scope`: what a search in this process reaches behind the global scope.
  void look(const elf::ProcessImage& process, const std::vector<int>& objects,
            const std::vector<int>& scope) {
    for (const int object : objects) {
      const auto undefined = process.object(object).library->symbols.undefined();
      if (!undefined) continue;
      for (const elf::UndefinedSymbol& symbol : *undefined) {
        // C++ names of torch drift with torch's release: that is
        // another question. GLIBC's are whole versions.
        if (symbol.weak || symbol.name.starts_with("_Z") || symbol.version.starts_with("GLIBC")) continue;
        if (process.provider_of(elf::SymbolQuery(symbol), scope) >= 0) continue;
        const int from = should_have_it(process, object, symbol);
        if (from >= 0) add(process, object, from, symbol.name, symbol.version);
      }
    }
    for (const elf::UnmetNeed& unmet : process.unmet_versions(objects))
      add(process, unmet.object, unmet.provider, "", unmet.version);
  }

  // The same files in a process without LD_LIBRARY_PATH: whether what the loader then takes fits.
  void compare_without_variable(const std::string& module) {
    const bool blamed = std::ranges::any_of(
        found_, [](const BindingMismatch& mismatch) { return mismatch.found_by.starts_with(kVariable); });
    if (!blamed) return;
    auto process = elf::ProcessImage::start(libraries_, so_far_.python.value.executable, false);
    if (!process) return;
    if (so_far_.torch.present()) elf::load_torch(*process, host_, torch_load_request(so_far_));
    if (!module.empty()) process->load(module, process->python_object(), false);
    for (BindingMismatch& mismatch : found_) {
      const int other = process->find(mismatch.soname);
      if (other < 0 || !mismatch.found_by.starts_with(kVariable)) continue;
      const elf::ElfLibrary& library = *process->object(other).library;
      elf::UndefinedSymbol wanted;
      wanted.name = mismatch.name;
      wanted.version = mismatch.version;
      const bool fits = mismatch.name.empty() ? library.symbols.versions().defines(mismatch.version)
                                              : library.symbols.exports(elf::SymbolQuery(wanted));
      if (fits) mismatch.without_library_path = path_normalize(process->object(other).path);
    }
  }

  std::vector<BindingMismatch> take() { return std::move(found_); }

 private:
  // One name or version that `object` needs and `from` lacks. More than kMostMismatches are dropped.
  void add(const elf::ProcessImage& process, int object, int from, const std::string& name,
           const std::string& version) {
    if (found_.size() >= kMostMismatches) return;
    const elf::LoadedObject& library = process.object(from);
    BindingMismatch mismatch;
    mismatch.needed_by = path_normalize(process.object(object).path);
    mismatch.name = name;
    mismatch.version = version;
    mismatch.soname =
        library.library->dynamic.has_soname ? library.library->dynamic.soname : path_basename(library.path);
    mismatch.library = path_normalize(library.path);
    mismatch.found_by = library.found_by;
    for (const NvidiaWheel& wheel : so_far_.torch.value.nvidia_wheels)
      if (std::ranges::find(wheel.libraries, mismatch.library) != wheel.libraries.end())
        mismatch.wheel = wheel.name + "==" + wheel.version;
    found_.push_back(std::move(mismatch));
  }

  const Host& host_;
  const Snapshot& so_far_;
  elf::LibraryCache& libraries_;
  std::vector<BindingMismatch> found_;
};

}  // namespace

std::vector<BindingMismatch> mismatches_of_torch(const Host& host, const Snapshot& so_far,
                                                 ExtensionResolver& resolver) {
  if (!resolver.failure().empty() || !so_far.torch.present()) return {};
  // A copy: what lies in it is asked again, as _C and each preload see it.
  elf::ProcessImage process = resolver.with_torch();
  std::vector<int> added;
  for (int i = resolver.bare().object_count(); i < process.object_count(); ++i) added.push_back(i);
  Finder finder(host, so_far, resolver.libraries());
  finder.look(process, added, added);
  finder.compare_without_variable("");
  return finder.take();
}

std::vector<BindingMismatch> mismatches_of_module(const Host& host, const Snapshot& so_far,
                                                  ExtensionResolver& resolver, const std::string& path) {
  if (!resolver.failure().empty()) return {};
  elf::ProcessImage process = resolver.with_torch();
  const elf::LoadResult loaded = process.load(path, process.python_object(), false);
  if (loaded.object < 0) return {};
  Finder finder(host, so_far, resolver.libraries());
  finder.look(process, loaded.added, loaded.list);
  finder.compare_without_variable(path);
  return finder.take();
}

}  // namespace scankit::probes

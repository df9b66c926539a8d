// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/elf/image.h"
#include "doctor/elf/library.h"
#include "doctor/elf/symbols.h"
#include "doctor/host/host.h"
#include "doctor/model/snapshot.h"

namespace scankit::probes {

// Folders listed once, however many modules are looked for.
class FolderListings {
 public:
  explicit FolderListings(const Host& host) : host_(&host) {}
  // Empty where the folder cannot be listed, as import sees it.
  const std::vector<DirEntry>& of(const std::string& folder);
  // Folders that exist and could not be listed, each with the reason.
  const std::vector<Message>& unreadable() const { return unreadable_; }

 private:
  const Host* host_;
  std::map<std::string, std::vector<DirEntry>> known_;
  std::vector<Message> unreadable_;
};

// The copies of one module, with module, path, tag, sys_path_index, selected, why_not_selected and
// distribution set.
std::vector<Extension> find_copies(const Host& host, const Snapshot& so_far, const std::string& module,
                                   FolderListings& listings);

// Fills everything that the file at copy.path says by itself.
// Returns it opened where it is a whole ELF library.
std::shared_ptr<const elf::ElfLibrary> inspect_file(const Host& host, Extension& copy);

// A name that TORCH_LIBRARY's static initialiser calls: the file makes operators of torch as it is loaded.
bool registers_operators(std::string_view symbol);

// Every file on sys.path that is, or nearly is, one of the modules: in the order in which import meets them,
// read and resolved as after `import torch`. `torch_missing` gets what torch's own closure
// lacks. No file at all is a present, empty answer. A file that vanishes or cannot be read
// meanwhile is a state of that file.
Probed<std::vector<Extension>> probe_extensions(const Host& host, const Snapshot& so_far,
                                                const std::vector<std::string>& modules,
                                                std::vector<TorchNeed>& torch_missing,
                                                std::vector<BindingMismatch>* torch_mismatches = nullptr);

// One file by itself: everything that does not depend on an environment. `resolved` stays false.
Extension inspect_extension(const Host& host, const std::string& path);

// Which torch the file was made for, once its other facts are known.
BuiltFor date_extension(const Extension& copy, const std::vector<elf::UndefinedSymbol>& undefined,
                        const elf::Image& image);

// What the compilers of a file left in it: lines of .comment ("GCC: (Debian 12.2.0-14) 12.2.0"), without those of
// linkers, and of its packed device code the CUDA toolkits ("13.0") and nvccs ("13.0.88"). Empty where it does not say.
struct CompilerTraces {
  std::vector<std::string> compilers, toolkits, nvccs;  // sorted, each once
};
CompilerTraces compiler_traces(const Host& host, const std::string& path);
// The lines of .comment as they are, with line ends; "" where it was stripped.
std::string comment_section(const elf::Image& image);

// One answer for the files that `name`, a wheel or a folder, holds.
BuiltFor date_files_together(const std::string& name, const std::vector<BuiltFor>& files);

// One answer for each distribution that an examined copy belongs to. Its other libraries are read too: they
// come from the same build, and each of them narrows the answer.
std::vector<BuiltFor> date_distributions(const Host& host, const std::vector<Distribution>& installed,
                                         const std::vector<Extension>& copies);

// The names of every library that is loaded after `import torch`.
Probed<Exports> probe_exports(const Host& host, const Snapshot& so_far);

// Sonames that the loader finds for an object without an RPATH: LD_LIBRARY_PATH, ld.so.cache, the default
// directories. From it --so with --from learns which libraries the target has.
Probed<std::vector<std::string>> probe_reachable(const Host& host, const Snapshot& so_far);

// Sorted names as one line of text: each without what it shares with the one before, zstd, base64. 110
// thousand names of torch are 12 MB as they are and 1 MB so.
std::string pack_names(const std::vector<std::string>& sorted);
// A stranger's text: Errc::Malformed for anything but packed names.
Result<std::vector<std::string>> unpack_names(const std::string& packed);

// The kinds of device images in torch's own kernels, each once, by chip. Reads headers only: the library has
// some hundred containers in 300 MB. The string says why there are none; "" where there is nothing to say.
Message read_torch_images(const Host& host, Torch& torch);

// The torch that `import torch` would take, described from its files, whether it can be imported or not.
// Absent: there is none. Failed: there is something, but not enough of it to tell the version. The note also
// tells what is incomplete about a torch that is Present.
Probed<Torch> probe_torch(const Host& host, const Python& python,
                          const std::vector<Distribution>& distributions);

// `NAME = 'value'` or `NAME: Optional[str] = 'value'` of torch/version.py; "" for None and for a name that is
// not there.
std::string version_file_value(std::string_view text, std::string_view name);
// The newest standard that an `#if ... __cplusplus < 201703L` of the text demands: "17"; "" for none.
std::string demanded_cxx_standard(std::string_view header);

// The shared libraries of the installed packages, found by walking the site folders.
struct InstalledLibraries {
  std::vector<std::string> files;                            // sorted; each once
  std::map<std::string, std::string> owners;                 // file -> distribution, by RECORD
  std::multimap<std::string, std::string> by_name;           // "libopenblas.so.0" -> file
  std::map<std::string, std::vector<std::string>> by_owner;  // distribution -> files
  std::vector<std::string> folders;                          // walked
  std::vector<Message> unreadable;  // folders or parts of them that could not be, with the reason
};
InstalledLibraries find_installed_libraries(const Host& host, const Snapshot& so_far);

// "" where import may take a file of that name; else why it never does.
Message why_not_for_this_python(const Python& python, const std::string& name);
// Named with a Python tag ("m.cpython-311-x86_64-linux-gnu.so",
// "m.abi3.so"): an extension, whatever it holds.
bool has_python_tag(const std::string& name);

// Every compiled extension below the site directories of sys.path, or of a part of them (AuditScope),
// followed through the loader's rules: those that use torch in the process as it is after `import
// torch`, the others in that of the bare interpreter. `progress` hears how many of the files are done;
// it may be empty.
enum class AuditScope {
  Packages,  // what the packages that the user named hold
  Linked,    // what links torch or CUDA, in whatever package
  All
};
using AuditProgress = std::function<void(std::size_t done, std::size_t of)>;
Probed<Audit> probe_audit(const Host& host, const Snapshot& so_far, AuditScope scope,
                          const AuditProgress& progress);

}  // namespace scankit::probes

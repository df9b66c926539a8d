// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "doctor/base/message.h"
#include "doctor/elf/search.h"

// What glibc's loader would do in one process, without doing it: which files
// it loads, in which order, and where each undefined name finds its
// definition. Copyable, so that one process with torch serves every extension.

namespace scankit::elf {

struct LoadedObject {
  std::shared_ptr<const ElfLibrary> library;
  std::string path;                // as the loader names it, ".." included: $ORIGIN is made of it
  std::string found_by;            // the step of the search that found it: "LD_LIBRARY_PATH /x"
  int loader = -1;                 // the object whose need, or whose dlopen, brought it
  std::vector<std::string> names;  // requested names and sonames that it answers to
  std::vector<int> dependencies;   // those of DT_NEEDED that were found, in order
};

struct UnfoundLibrary {
  std::string name, needed_by;
  std::vector<Message> searched;
  Message fatal;  // the file at which the loader gave up
};

struct LoadResult {
  int object = -1;  // -1: the file itself cannot be loaded, see `failure`
  Message failure;
  std::vector<int> list;   // the object and all it needs, breadth first: its part of the scope
  std::vector<int> added;  // those that were not loaded before
  std::vector<UnfoundLibrary>
      missing;  // the loader would stop at the first; here the rest is loaded all the same
};

struct ResolvedSymbol {
  UndefinedSymbol symbol;
  int provider = -1;
};

struct UnmetNeed {
  int object = -1, provider = -1;  // who needs the version, and the library that lacks it
  std::string version;
};

class ProcessImage {
 public:
  // The program with its preloads and needs. Fails for a program that is static, or not glibc's.
  // Without `use_library_path`, as if LD_LIBRARY_PATH were not set.
  static Result<ProcessImage> start(LibraryCache& libraries, const std::string& program,
                                    bool use_library_path = true);

  // dlopen(path, global ? RTLD_GLOBAL : RTLD_LOCAL) called from code of object `caller`.
  LoadResult load(const std::string& path, int caller, bool global);
  // Every undefined name of the object in the scope that dlopen gives it: the global one, then its own list.
  Result<std::vector<ResolvedSymbol>> resolve(int object, const std::vector<int>& list) const;
  // The first object of the scope that defines the name; -1 for none.
  int provider_of(const SymbolQuery& query, const std::vector<int>& list) const;
  // Version needs of these objects that the library found does not define (glibc elf/dl-version.c).
  std::vector<UnmetNeed> unmet_versions(const std::vector<int>& objects) const;

  const LoadedObject& object(int index) const { return objects_[static_cast<std::size_t>(index)]; }
  bool is_global(int index) const;  // every library that is loaded later sees its names
  int object_count() const { return static_cast<int>(objects_.size()); }
  // By requested name, soname or path; -1 where it is not loaded.
  int find(const std::string& name) const;
  const std::vector<UnfoundLibrary>& missing_at_start() const { return missing_at_start_; }
  const SearchContext& context() const { return context_; }
  // The object whose code calls dlopen for `import`: libpython,
  // or the program itself where that is linked in.
  int python_object() const;

 private:
  int add(std::shared_ptr<const ElfLibrary> library, const std::string& name, int loader);
  int find_or_add(const std::string& name, int loader, std::vector<UnfoundLibrary>& missing);
  void load_needs(LoadResult& result);
  std::vector<int> breadth_first(const std::vector<int>& roots) const;
  struct Steps {
    std::vector<SearchStep> list;
    std::size_t present = 0;  // folders that exist
  };
  const Steps& steps_for(int loader);
  std::vector<SearchStep> make_steps(int loader) const;
  void append_rpath(int object, std::vector<SearchStep>& steps) const;
  std::string origin(int object) const;
  std::vector<std::string> folders_of(const std::string& path_list, int object) const;

  LibraryCache* libraries_ = nullptr;
  SearchContext context_;
  std::vector<LoadedObject> objects_;  // 0: the program; 1: the loader
  std::vector<int> global_;
  std::vector<UnfoundLibrary> missing_at_start_;
  std::map<int, std::shared_ptr<const Steps>> steps_;  // by object
  std::size_t tries_ = 0;  // folders that exist, for each library that was searched
};

// What `import torch` makes the loader do, as far as it decides which libraries a later extension meets.
struct TorchLoadRequest {
  std::string location;                         // the package's folder
  std::string cuda_major;                       // "13"; empty for a CPU build
  std::vector<std::string> sys_path;            // in order
  std::vector<std::string> extension_suffixes;  // in order
};
struct TorchLoad {
  bool loaded = false;                  // torch/_C was found and mapped
  Message note;                         // why not
  std::vector<UnfoundLibrary> missing;  // what its closure needs and nothing provides
};
// Leaves in `process` whatever could be loaded.
TorchLoad load_torch(ProcessImage& process, const Host& host, const TorchLoadRequest& request);

// The libraries that torch/__init__.py loads by path before or after libtorch_global_deps: each release has
// its own list, so it is read from that release's file.
struct TorchPreloads {
  using Pattern = std::pair<std::string, std::string>;  // {"cublas", "libcublas.so.*[0-9]"}
  std::string condition;                                // only where a loaded file's path holds this text
  std::vector<Pattern> after, on_failure;
};
TorchPreloads parse_torch_preloads(std::string_view init_py);

}  // namespace scankit::elf

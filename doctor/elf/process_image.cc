// SPDX-License-Identifier: Apache-2.0
#include "doctor/elf/process_image.h"

#include <algorithm>
#include <set>

#include "doctor/base/files.h"
#include "doctor/base/say.h"

namespace scankit::elf {

constexpr std::size_t kObjectLimit = 4096;  // hostile chains of needs end somewhere
constexpr std::size_t kFolderLimit = 4096;  // of one path list; the longest of a torch wheel has some twenty
constexpr std::size_t kTryLimit = 200'000;  // a process with torch and all of CUDA needs some thousand

// The libraries of LD_PRELOAD come right after the program in the global scope (ld.so(8)). The loader
// answers to its own soname from the start, but is in the scope only where an object needs it.
Result<ProcessImage> ProcessImage::start(LibraryCache& libraries, const std::string& program,
                                         bool use_library_path) {
  ProcessImage process;
  process.libraries_ = &libraries;
  SCANKIT_TRY(auto main_program, libraries.open(program));
  if (!main_program->dynamic.present || read_interpreter(main_program->image).empty())
    return Error{Errc::Unsupported, message("{} is linked statically: it loads no libraries", program), ""};
  process.context_ = make_search_context(libraries.host(), *main_program, program);
  if (!use_library_path) process.context_.library_path.clear();
  const std::string& interpreter = process.context_.interpreter;
  if (interpreter.find("/ld-musl") != std::string::npos)
    return Error{Errc::Unsupported, message("{} uses musl, whose loader has other rules", program), ""};
  process.add(std::move(main_program), program, -1);
  if (auto loader = libraries.open(interpreter)) process.add(*loader, interpreter, -1);

  LoadResult result;
  std::vector<int> roots = {0};
  for (const std::string& name : process.context_.preload) {
    std::vector<UnfoundLibrary> ignored;  // the loader only warns of a preload that is not there
    const int found = process.find_or_add(name, 0, ignored);
    if (found >= 0) roots.push_back(found);
  }
  result.added = roots;
  process.load_needs(result);
  process.global_ = process.breadth_first(roots);
  process.missing_at_start_ = std::move(result.missing);
  return process;
}

int ProcessImage::add(std::shared_ptr<const ElfLibrary> library, const std::string& name, int loader) {
  LoadedObject object;
  object.path = library->path;
  object.names = {name};
  if (library->dynamic.has_soname) object.names.push_back(library->dynamic.soname);
  object.loader = loader;
  object.library = std::move(library);
  objects_.push_back(std::move(object));
  return static_cast<int>(objects_.size()) - 1;
}

int ProcessImage::find(const std::string& name) const {
  for (std::size_t i = 0; i < objects_.size(); ++i) {
    const LoadedObject& o = objects_[i];
    if ((i != 0 && o.path == name) || std::ranges::find(o.names, name) != o.names.end())
      return static_cast<int>(i);
  }
  return -1;
}

// The loader knows the program's real file (/proc/self/exe) and resolves no links in the paths of libraries
// (_dl_get_origin, _dl_new_object).
std::string ProcessImage::origin(int index) const {
  return index == 0 ? context_.main_origin : path_dirname(object(index).path);
}

// As fillin_rpath() of elf/dl-load.c: tokens are expanded, and no directory is searched twice.
std::vector<std::string> ProcessImage::folders_of(const std::string& path_list, int index) const {
  std::vector<std::string> folders;
  std::set<std::string> seen;
  std::size_t at = 0;
  while (at <= path_list.size() && folders.size() < kFolderLimit) {
    const auto end = std::min(path_list.find(':', at), path_list.size());
    std::string folder = expand_tokens(path_list.substr(at, end - at), origin(index), context_);
    while (folder.size() > 1 && folder.back() == '/') folder.pop_back();
    if (folder.empty())
      folder = libraries_->host().env("PWD").value_or(".");  // an empty entry is the current folder
    if (seen.insert(folder).second) folders.push_back(std::move(folder));
    at = end + 1;
  }
  return folders;
}

// DT_RPATH is ignored in an object that has DT_RUNPATH too (elf/get-dynamic-info.h).
void ProcessImage::append_rpath(int index, std::vector<SearchStep>& steps) const {
  const Dynamic& dynamic = object(index).library->dynamic;
  if (dynamic.has_rpath && !dynamic.has_runpath && !dynamic.rpath.empty())
    steps.push_back(
        {say("RPATH of {}", path_normalize(object(index).path)), folders_of(dynamic.rpath, index)});
}

// elf/dl-load.c, _dl_map_object: RPATHs of the object that asks and of all that brought it, unless it has a
// RUNPATH; LD_LIBRARY_PATH; its own RUNPATH.
std::vector<SearchStep> ProcessImage::make_steps(int loader) const {
  std::vector<SearchStep> steps;
  const Dynamic& asking = object(loader).library->dynamic;
  if (!asking.has_runpath) {
    bool met_main = false;
    for (int i = loader; i >= 0; i = object(i).loader) {
      append_rpath(i, steps);
      met_main |= i == 0;
    }
    // The program's DT_RPATH serves every object, also where the chain does not lead to the program.
    if (!met_main) append_rpath(0, steps);
  }
  if (!context_.library_path.empty()) steps.push_back({"LD_LIBRARY_PATH", context_.library_path});
  if (asking.has_runpath && !asking.runpath.empty())
    steps.push_back(
        {say("RUNPATH of {}", path_normalize(object(loader).path)), folders_of(asking.runpath, loader)});
  return steps;
}

// Made once for each object: all its needs are searched in the same directories, and most directories of a
// hostile list do not exist.
const ProcessImage::Steps& ProcessImage::steps_for(int loader) {
  std::shared_ptr<const Steps>& known = steps_[loader];
  if (known) return *known;
  Steps steps{make_steps(loader), 0};
  for (SearchStep& step : steps.list) {
    step.existing.emplace();
    for (std::size_t i = 0; i < step.folders.size(); ++i)
      if (libraries_->has_folder(step.folders[i])) step.existing->push_back(i);
    steps.present += step.existing->size();
  }
  known = std::make_shared<const Steps>(std::move(steps));
  return *known;
}

// The index of the object that answers to the name, which is loaded if necessary. -1 where there is none;
// then `missing` gets an entry. The bounds on directories and objects report a library as missing, never
// as found.
int ProcessImage::find_or_add(const std::string& raw_name, int loader, std::vector<UnfoundLibrary>& missing) {
  const std::string name = expand_tokens(raw_name, origin(loader), context_);
  if (const int known = find(name); known >= 0) return known;
  const bool is_path = name.find('/') != std::string::npos;
  const bool no_default = object(loader).library->dynamic.no_default_lib;
  SearchResult found;
  if (is_path) {
    found = open_named_file(*libraries_, context_, name);
  } else if (const Steps& steps = steps_for(loader); (tries_ += steps.present) <= kTryLimit) {
    found = search_library(*libraries_, context_, name, steps.list, no_default);
  } else {
    found.fatal =
        message("the search for {} was stopped: {} lists too many directories for the libraries it needs",
                name, object(loader).path);
  }
  if (!found.library || objects_.size() >= kObjectLimit) {
    missing.push_back({name, object(loader).path, std::move(found.searched), std::move(found.fatal)});
    return -1;
  }
  // The same file under another name is the same object (_dl_file_id_match_p); inode 0 is a recorded host's.
  for (std::size_t i = 0; i < objects_.size() && found.library->inode != 0; ++i) {
    const ElfLibrary& known = *objects_[i].library;
    if (known.inode != found.library->inode || known.device != found.library->device) continue;
    objects_[i].names.push_back(name);
    return static_cast<int>(i);
  }
  const int added = add(std::move(found.library), name, loader);
  if (!found.searched.empty()) objects_.back().found_by = found.searched.back().english();
  return added;
}

// Maps what `added` needs, breadth first, as _dl_map_object_deps does. `added` grows while it is walked.
void ProcessImage::load_needs(LoadResult& result) {
  for (std::size_t i = 0; i < result.added.size(); ++i) {
    const int asking = result.added[i];
    const auto library = object(asking).library;  // objects_ may move below
    for (const std::string& need : library->dynamic.needed) {
      const int before = object_count();
      const int found = find_or_add(need, asking, result.missing);
      if (found < 0) continue;
      objects_[static_cast<std::size_t>(asking)].dependencies.push_back(found);
      if (found >= before) result.added.push_back(found);
    }
  }
}

// The order in which names are looked up: a library that two objects need comes at its first place.
std::vector<int> ProcessImage::breadth_first(const std::vector<int>& roots) const {
  std::vector<int> list = roots;
  std::set<int> seen(roots.begin(), roots.end());
  for (std::size_t i = 0; i < list.size(); ++i)
    for (const int next : object(list[i]).dependencies)
      if (seen.insert(next).second) list.push_back(next);
  return list;
}

LoadResult ProcessImage::load(const std::string& path, int caller, bool global) {
  LoadResult result;
  const int before = object_count();
  std::vector<UnfoundLibrary> missing;
  result.object = find_or_add(path, caller, missing);
  if (result.object < 0) {
    result.failure = missing.front().fatal.empty() ? message("{}: not found", path) : missing.front().fatal;
    return result;
  }
  if (result.object >= before) result.added.push_back(result.object);
  load_needs(result);
  result.list = breadth_first({result.object});
  // Also where the file was loaded before: a dlopen with RTLD_GLOBAL promotes it and what it needs.
  if (global)
    for (const int i : result.list)
      if (std::ranges::find(global_, i) == global_.end()) global_.push_back(i);
  return result;
}

// The global scope comes first, whatever the object's own list has (elf/dl-lookup.c, _dl_lookup_symbol_x).
int ProcessImage::provider_of(const SymbolQuery& query, const std::vector<int>& list) const {
  for (const std::vector<int>* scope : {&global_, &list})
    for (const int i : *scope)
      if (object(i).library->symbols.exports(query)) return i;
  return -1;
}

Result<std::vector<ResolvedSymbol>> ProcessImage::resolve(int index, const std::vector<int>& list) const {
  SCANKIT_TRY(auto undefined, object(index).library->symbols.undefined());
  std::vector<ResolvedSymbol> resolved;
  resolved.reserve(undefined.size());
  for (UndefinedSymbol& symbol : undefined) {
    const int provider = provider_of(SymbolQuery(symbol), list);
    resolved.push_back({std::move(symbol), provider});
  }
  return resolved;
}

std::vector<UnmetNeed> ProcessImage::unmet_versions(const std::vector<int>& objects) const {
  std::vector<UnmetNeed> unmet;
  for (const int i : objects) {
    for (const VersionNeed& need : object(i).library->symbols.versions().needs()) {
      const int provider = find(need.file);
      if (provider < 0 || need.weak) continue;
      // A library without any definitions is taken with a warning.
      const Versions& versions = object(provider).library->symbols.versions();
      if (versions.has_definitions() && !versions.defines(need.name))
        unmet.push_back({i, provider, need.name});
    }
  }
  return unmet;
}

bool ProcessImage::is_global(int index) const { return std::ranges::find(global_, index) != global_.end(); }

int ProcessImage::python_object() const {
  for (int i = 0; i < object_count(); ++i)
    if (path_basename(object(i).path).starts_with("libpython")) return i;
  return 0;
}

}  // namespace scankit::elf

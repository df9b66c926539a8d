// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/base/version.h"
#include "doctor/probes/extensions/extension_resolve.h"
#include "doctor/probes/extensions/extensions.h"
#include "doctor/probes/target/target.h"
#include "doctor/probes/target/target_resolve.h"
#include "doctor/probes/target/wheel.h"

// A name is a library, a wheel, or a directory with either. A wheel is unpacked into a scratch directory
// that is overlaid at the path of the wheel, so its libraries have paths such as /x/m.whl/pkg/_C.so, and
// messages name the wheel.
namespace scankit::probes {
namespace {

// Bounds of one directory: entries listed, and levels.
constexpr std::size_t kMostNamedEntries = 200'000, kDeep = 32;

Error unusable_file(const std::string& name, const Message& why, Message hint) {
  return {Errc::InvalidArgument, message("--so {}: {}", printable(name), why), std::move(hint)};
}

// Only names that import could take: "libx.so.1" is not among them.
bool is_library_name(const std::string& name) { return name.ends_with(".so") && name.size() > 3; }

// "pkg/_C.cpython-311-x86_64-linux-gnu.so" -> "pkg._C".
std::string module_of(const std::string& relative) {
  const std::string base = path_basename(relative);
  std::string module = relative.substr(0, relative.size() - base.size()) + base.substr(0, base.find('.'));
  std::ranges::replace(module, '/', '.');
  return module;
}

// What is worth a look below a folder, by paths relative to it.
struct FilesFound {
  std::vector<std::string> libraries, wheels;
};

// Libraries and wheels below a folder, links to folders not followed.
Result<void> collect_files(const Host& here, const std::string& folder, const std::string& below,
                           std::size_t depth, std::size_t& entries, FilesFound& found) {
  SCANKIT_TRY(const std::vector<DirEntry> listed, here.list(path_join(folder, below)));
  entries += listed.size();
  if (entries > kMostNamedEntries || depth > kDeep)
    return unusable_file(folder, "too many files or folders within folders to look through",
                         "give a directory in it");
  for (const DirEntry& entry : listed) {
    const std::string relative = below.empty() ? entry.name : below + "/" + entry.name;
    if (entry.kind == FileKind::Directory) {
      SCANKIT_CHECK(collect_files(here, folder, relative, depth + 1, entries, found));
    } else if (is_library_name(entry.name) && !here.is_directory(path_join(folder, relative))) {
      found.libraries.push_back(relative);
    } else if (entry.name.ends_with(".whl")) {
      found.wheels.push_back(relative);
    }
  }
  return {};
}

// Collects what the user named. Names are looked up in the running system, `here_`. `outside_`: the examined
// system is another one, into which the files have to be overlaid.
class Opener {
 public:
  explicit Opener(std::unique_ptr<Host> base) : outside_(!base->is_live()) {
    named_.host = std::make_unique<OverlayHost>(std::move(base));
  }

  Result<void> add(const std::string& name) {
    const auto real = here_->realpath(name);
    if (!real)
      return unusable_file(name, real.error().message, "give a shared library, a wheel or a directory");
    if (here_->is_directory(*real)) return add_folder(name, *real);
    if (name.ends_with(".whl")) return add_wheel(*real);
    return add_file(name, *real);
  }
  NamedFiles take() { return std::move(named_); }

 private:
  // A folder of this machine as the examined system is to see it.
  // Where the examined system is another one, the directory gets a path that this system does not use.
  std::string placed(const std::string& folder) {
    if (!outside_) return folder;
    std::string at = folder;
    for (int i = 0; named_.host->exists(at); ++i) at = "/so-" + std::to_string(i) + folder;
    named_.host->overlay(at, folder);
    return at;
  }
  Result<void> add_file(const std::string& name, const std::string& real) {
    if (const auto opened = here_->open(real); !opened)
      return unusable_file(name, opened.error().message, "give a shared library, a wheel or a directory");
    // The name as given, not what a link leads to: import goes by it.
    const std::string base = path_basename(name);
    const auto above = here_->realpath(path_dirname(name));
    const std::string folder = placed(above.value_or(path_dirname(real)));
    named_.files.push_back({module_of(base), path_join(folder, base), folder, true});
    return {};
  }
  Result<void> add_folder(const std::string& name, const std::string& real) {
    FilesFound found;
    std::size_t entries = 0;
    SCANKIT_CHECK(collect_files(*here_, real, "", 0, entries, found));
    if (found.libraries.empty() && found.wheels.empty())
      return unusable_file(name, "no shared library or wheel found in it", "give another directory");
    for (const std::string& wheel : found.wheels) SCANKIT_CHECK(add_wheel(path_join(real, wheel)));
    if (found.libraries.empty()) return {};
    const std::string folder = placed(real);
    for (const std::string& file : found.libraries)
      named_.files.push_back({module_of(file), path_join(folder, file), folder});
    return {};
  }
  Result<void> add_wheel(const std::string& real) {
    SCANKIT_TRY(TemporaryDirectory scratch, TemporaryDirectory::create("scankit-wheel"));
    SCANKIT_TRY(UnpackedWheel unpacked, unpack_wheel(real, scratch.path()));
    // The wheel's own path stands for the folder that it would be unpacked into.
    named_.host->overlay(real, scratch.path());
    for (const std::string& file : unpacked.libraries)
      if (is_library_name(file)) named_.files.push_back({module_of(file), path_join(real, file), real});
    named_.wheels.push_back(std::move(unpacked.wheel));
    named_.unpacked.push_back(std::move(scratch));
    return {};
  }

  bool outside_;
  std::unique_ptr<Host> here_ = make_real_host();
  NamedFiles named_;
};

std::string tag_of(const std::string& path) {
  const std::string base = path_basename(path);
  const auto first = base.find('.'), last = base.rfind('.');
  return last > first ? base.substr(first + 1, last - first - 1) : "";
}

// A library beside the modules is none itself: it exports no PyInit_ and its name carries no Python's tag.
bool is_module(const NamedFile& file, const Extension& copy) {
  // torch.ops.load_library takes a library that no import could, and what it misses of torch it misses all
  // the same.
  if (file.named_itself || !copy.inits.empty() || copy.uses_torch) return true;
  if (copy.tag.starts_with("cpython-") || copy.tag.starts_with("pypy") || copy.tag == "abi3") return true;
  return copy.file_state != "elf" && !path_basename(copy.path).starts_with("lib");
}

// The index of the directory in sys.path, to which it is appended with the origin "so".
int place_on_path(Python& python, const std::string& folder) {
  auto& path = python.sys_path;
  auto at = std::ranges::find_if(
      path, [&](const PathEntry& entry) { return entry.path == folder && entry.origin == "so"; });
  if (at == path.end()) at = path.insert(path.end(), {folder, "so", true});
  return static_cast<int>(at - path.begin());
}

// As import chooses: by the suffixes of that Python, and then the first file of a module.
void choose(const Python& python, std::set<std::string>& taken, Extension& copy) {
  const std::string base = path_basename(copy.path), leaf = copy.module.substr(copy.module.rfind('.') + 1);
  const bool fits = std::ranges::any_of(python.extension_suffixes,
                                        [&](const std::string& suffix) { return base == leaf + suffix; });
  if (!fits)
    copy.why_not_selected = message("suffix {} is not one of this Python's", base.substr(leaf.size()));
  else if (copy.shadowed = !taken.insert(copy.module).second; copy.shadowed)
    copy.why_not_selected = message("shadowed by another given file of this module");
  copy.selected = copy.why_not_selected.empty();
}

}  // namespace

Result<NamedFiles> open_named_files(std::unique_ptr<Host> base, const std::vector<std::string>& names) {
  Opener opener(std::move(base));
  for (const std::string& name : names) SCANKIT_CHECK(opener.add(name));
  return opener.take();
}

namespace {

struct Inspected {
  Extension copy;
  const NamedFile* file = nullptr;
};

// What the files say by themselves; they become the modules of the snapshot.
std::vector<Inspected> inspect_named_files(const NamedFiles& named, Snapshot& snapshot) {
  std::vector<Inspected> found;
  std::set<std::string> taken;
  Python& python = snapshot.python.value;
  std::map<std::string, std::vector<BuiltFor>> groups;  // by wheel or folder
  for (const NamedFile& file : named.files) {
    Extension copy;
    copy.module = file.module;
    copy.path = file.path;
    copy.tag = tag_of(file.path);
    const bool whole = inspect_file(*named.host, copy) != nullptr;
    const bool is_dated = !copy.built_for.file.empty();
    if (is_dated && !file.named_itself) groups[file.folder].push_back(copy.built_for);
    if (!is_module(file, copy)) {
      // Not imported by itself, yet it was built for the same torch.
      if (is_dated) snapshot.built_for.push_back(copy.built_for);
      continue;
    }
    copy.sys_path_index = place_on_path(python, file.folder);
    choose(python, taken, copy);
    // soabi names the machine: "cpython-311-x86_64-linux-gnu".
    if (!whole)
      copy.resolution_note = message("the file is not a complete library: {}", copy.file_state);
    else if (!copy.machine.empty() && !python.soabi.empty() &&
             python.soabi.find(copy.machine) == std::string::npos)
      copy.resolution_note = message("built for {}, the interpreter for {}", copy.machine, python.soabi);
    if (std::ranges::find(snapshot.modules, copy.module) == snapshot.modules.end())
      snapshot.modules.push_back(copy.module);
    found.push_back({std::move(copy), &file});
  }
  snapshot.modules_asked = snapshot.modules;
  for (const auto& [name, files] : groups) snapshot.built_for.push_back(date_files_together(name, files));
  return found;
}

// False where there is no Python to place them in.
bool start_named_files(const NamedFiles& named, Snapshot& snapshot) {
  snapshot.wheels = named.wheels;
  snapshot.modules.clear();
  snapshot.built_for.clear();  // --from: those of the snapshot's own files
  snapshot.importers =
      Probed<std::vector<Importer>>::absent(message("only the files given with --so are examined"));
  if (snapshot.python.present()) return true;
  snapshot.extensions =
      Probed<std::vector<Extension>>::failed(message("no Python to look at: {}", snapshot.python.note));
  return false;
}

// "cp311" among the tags of the wheel that the file lies in, for a Python 3.11.
bool wheel_promises(const NamedFiles& named, const std::string& folder, const std::string& python) {
  const auto version = Version::parse(python);
  if (!version) return false;
  const std::string tag = "cp" + std::to_string(version->part(0)) + std::to_string(version->part(1));
  return std::ranges::any_of(named.wheels, [&](const Wheel& wheel) {
    return wheel.path == folder && std::ranges::find(wheel.abi_tags, tag) != wheel.abi_tags.end();
  });
}

}  // namespace

// The examined system is an empty directory, so that no file of this machine is taken for one of the target.
Result<NamedFiles> open_named_files_alone(const std::vector<std::string>& names) {
  SCANKIT_TRY(TemporaryDirectory nothing, TemporaryDirectory::create("scankit-elsewhere"));
  SCANKIT_TRY(NamedFiles named, open_named_files(make_real_host(nothing.path()), names));
  named.unpacked.push_back(std::move(nothing));
  return named;
}

void probe_named_files(NamedFiles& named, Snapshot& snapshot) {
  if (!start_named_files(named, snapshot)) return;
  const Python& python = snapshot.python.value;
  // Seen from the files, the installed packages are neighbours, as if the wheel were unpacked
  // into site-packages.
  const auto site = std::ranges::find(python.sys_path, "site", &PathEntry::origin);
  if (site != python.sys_path.end()) named.host->overlay_files(site->path);
  std::vector<Inspected> found = inspect_named_files(named, snapshot);
  ExtensionResolver resolver(*named.host, snapshot);
  snapshot.torch.value.missing_libraries = resolver.torch_missing();
  snapshot.extensions = Probed<std::vector<Extension>>::of({});
  for (Inspected& one : found) {
    if (one.copy.resolution_note.empty()) resolver.resolve(one.copy);
    snapshot.extensions.value.push_back(std::move(one.copy));
  }
}

void probe_named_files_on_target(NamedFiles& named, Snapshot& snapshot) {
  // A copy: the resolver needs the facts as they were taken, and `snapshot` changes below.
  const Snapshot machine = snapshot;
  snapshot.observations = {ProbeState::NotRun, message("the files of --so are only read, not run"), {}};
  if (!start_named_files(named, snapshot)) return;
  std::vector<Inspected> found = inspect_named_files(named, snapshot);
  std::map<std::string, std::string> libraries;
  for (const NamedFile& file : named.files) libraries.emplace(path_basename(file.path), file.path);
  TargetResolver resolver(*named.host, machine, std::move(libraries));
  snapshot.extensions = Probed<std::vector<Extension>>::of({});
  for (Inspected& one : found) {
    const std::string& folder = one.file->folder;
    if (one.copy.resolution_note.empty())
      resolver.resolve(one.copy, folder, wheel_promises(named, folder, machine.python.value.version));
    snapshot.extensions.value.push_back(std::move(one.copy));
  }
}

}  // namespace scankit::probes

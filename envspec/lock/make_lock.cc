// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "builder/fix/distribution.h"
#include "builder/module/assemble.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/base/tool_version.h"
#include "doctor/probes/extensions/extensions.h"
#include "envspec/lock/install_metadata.h"
#include "envspec/lock/lock.h"

// The first half packs an installed distribution as a wheel again (the wheel format is PEP 427, RECORD
// is PEP 376 and PEP 627); the second half fills a lock from a snapshot and the files.
namespace scankit::envspec {
namespace {

constexpr std::size_t kOwnWheelLimit = 512u << 20;  // it is made in memory, and stored_zip() ends at 4 GB

Error cannot(const std::string& name, const Message& why) {
  return {Errc::Unsupported, message("{} cannot be repacked as a wheel: {}", name, why),
          message("build it as a wheel")};
}

// The path of one line of RECORD. RECORD is CSV: a path with a comma or a quotation mark is in quotes,
// with quotation marks doubled.
std::string record_path(std::string_view line) {
  if (!line.starts_with('"')) return std::string(line.substr(0, line.find(',')));
  std::string path;
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '"' && (i + 1 >= line.size() || line[i + 1] != '"')) break;
    if (line[i] == '"') ++i;
    path += line[i];
  }
  return path;
}

// Files that the installer added to the wheel's own, and will add again.
// `info` is "NAME-VERSION.dist-info".
bool is_installers(const std::string& path, const std::string& info) {
  for (const char* name :
       {"/RECORD", "/INSTALLER", "/REQUESTED", "/direct_url.json", "/uv_cache.json", "/uv_build.json"})
    if (path == info + name) return true;
  return path.ends_with(".pyc");
}

// The tag part of a file name: "cp38-abi3-linux_x86_64", or several tags compressed as in PEP 425,
// which can only express a full product of the three parts. "" where the tags are not one.
std::string joined_tags(const std::vector<std::string>& tags) {
  std::set<std::string> parts[3];
  for (const std::string& tag : tags) {
    const auto first = tag.find('-'), last = tag.rfind('-');
    if (first == std::string::npos || first == last) return "";
    parts[0].insert(tag.substr(0, first));
    parts[1].insert(tag.substr(first + 1, last - first - 1));
    parts[2].insert(tag.substr(last + 1));
  }
  if (tags.size() != parts[0].size() * parts[1].size() * parts[2].size()) return "";
  std::string name;
  for (const auto& part : parts) {
    name += name.empty() ? "" : "-";
    for (const std::string& word : part) name += (name.empty() || name.back() == '-' ? "" : ".") + word;
  }
  return name;
}

// The files of the distribution with their bytes, sorted by path. Each must still have the hash and
// size of its line in RECORD: a wheel of edited files would claim to be the original. A wheel also
// cannot contain files outside of site-packages; scripts of entry points are the exception, since the
// installer generates them.
Result<std::vector<fix::InstalledFile>> recorded_files(const Host& host, const Distribution& distribution,
                                                       const std::string& record) {
  const std::string folder = path_dirname(distribution.path), info = path_basename(distribution.path);
  const bool has_programs = host.exists(path_join(distribution.path, "entry_points.txt"));
  std::vector<fix::InstalledFile> files;
  std::size_t total = 0;
  for (const std::string_view line : lines_of(record)) {
    const std::string path = record_path(line);
    if (path.empty() || is_installers(path, info)) continue;
    // The programs of entry points are made by the installer.
    if (has_programs && path.starts_with("../") && path.find("/bin/") != std::string::npos) continue;
    if (!is_inner_path(path))
      return cannot(distribution.name, message("{} is outside its directory", shown_value(path)));
    auto bytes = host.read_file(path_join(folder, path), kOwnWheelLimit);
    if (!bytes) return cannot(distribution.name, bytes.error().message);
    total += bytes->size();
    if (total > kOwnWheelLimit)
      return cannot(distribution.name, message("it is larger than {} MB", kOwnWheelLimit >> 20));
    const std::string now = fix::record_line({path, *bytes});
    if (line != now.substr(0, now.size() - 1))
      return cannot(distribution.name, message("{} does not match its RECORD", shown_value(path)));
    files.push_back({path, *std::move(bytes)});
  }
  std::ranges::sort(files, {}, &fix::InstalledFile::path);
  return files;
}

}  // namespace

// Sorted files, an uncompressed archive and no time stamps: the same files give the same bytes and so
// the hash that the lock has.
Result<RepackedWheel> repack(const Host& host, const Distribution& distribution) {
  const std::string info = path_basename(distribution.path);
  const std::string stem = info.substr(0, info.rfind(".dist-info"));
  const std::string tags = joined_tags(installed_tags(host, distribution));
  RepackedWheel wheel;
  wheel.file = stem + "-" + tags + ".whl";
  if (!info.ends_with(".dist-info") || tags.empty() || !is_file_name(wheel.file))
    return cannot(distribution.name, message("it was not installed from a wheel"));
  const auto record = host.read_file(path_join(distribution.path, "RECORD"), 64u << 20);
  if (!record) return cannot(distribution.name, message("it has no RECORD"));
  SCANKIT_TRY(std::vector<fix::InstalledFile> files, recorded_files(host, distribution, *record));
  std::string lines;
  for (const fix::InstalledFile& file : files) {
    lines += fix::record_line(file);
    wheel.files[file.path] = sha256_hex(file.bytes);
  }
  const std::string path = info + "/RECORD";
  files.push_back({path, lines + path + ",,\n"});
  wheel.bytes = fix::stored_zip(files);
  return wheel;
}

// Programs are left out even where they come from the wheel as they are: their first line names the
// environment.
Result<std::vector<std::string>> content_paths(const Host& host, const Distribution& distribution) {
  const std::string info = path_basename(distribution.path);
  std::vector<std::string> paths;
  const auto record = host.read_file(path_join(distribution.path, "RECORD"), 64u << 20);
  if (!record && record.error().code != Errc::NotFound) return record.error();
  const std::string text = record ? *record : std::string();  // the lines are views of it
  for (const std::string_view line : lines_of(text)) {
    std::string path = record_path(line);
    if (!is_inner_path(path) || is_installers(path, info)) continue;
    paths.push_back(std::move(path));
  }
  std::ranges::sort(paths);
  return paths;
}

namespace {

LockedMachine machine_of(const Snapshot& snapshot, const EnvironmentFacts& facts) {
  LockedMachine machine;
  machine.architecture = processor_of(snapshot);
  machine.libc = snapshot.libc.value.kind;
  machine.libc_version = snapshot.libc.value.version;
  machine.driver = facts.driver.value;
  machine.driver_cuda = snapshot.driver.value.cuda_version;
  machine.libcuda = snapshot.driver.value.libcuda_version;
  if (!facts.driver.present()) machine.why_no_driver = facts.driver.note.english();
  machine.gpus = facts.gpus.value;
  if (!facts.gpus.present()) machine.why_no_gpus = facts.gpus.note.english();
  std::set<std::string> compilers;
  for (const Compiler& one : facts.compilers.value) compilers.insert(one.kind + " " + one.version);
  machine.compilers.assign(compilers.begin(), compilers.end());
  return machine;
}

// A first guess from the installer's records; resolve.cc changes "index" to "here" where no index
// has the file.
std::string source_of(const Distribution& one) {
  if (one.editable) return "editable";
  if (!one.conda_channel.empty()) return "conda";
  return one.installer == "scankit" ? "here" : "index";
}

// Of two distributions with one name, the first on sys.path counts. One whose name or version no
// installer would accept is left out: no requirement could name it.
std::vector<LockedDistribution> distributions_of(const Snapshot& snapshot) {
  std::vector<LockedDistribution> locked;
  std::set<std::string> seen;
  for (const Distribution& one : snapshot.distributions.value) {
    const std::string name = normalized_name(one.name);
    if (!is_locked_name(name) || !is_locked_version(one.version) || !seen.insert(name).second) continue;
    locked.push_back({name,
                      one.version,
                      one.installer,
                      source_of(one),
                      {},
                      english(message("the index was not queried"))});
  }
  std::ranges::sort(locked, {}, &LockedDistribution::name);
  return locked;
}

// Only modules that scankit built have a manifest in their file.
void add_module(const PlacedLibrary& placed, EnvironmentLock& lock) {
  if (!placed.distribution.starts_with("scankit-")) return;
  LockedModule module;
  module.path = placed.inner;
  module.distribution = placed.distribution;
  module.module = path_basename(placed.inner);
  module.module.erase(std::min(module.module.find('.'), module.module.size()));
  if (auto manifest = module::read_manifest(placed.path)) module.manifest = *std::move(manifest);
  lock.modules.push_back(std::move(module));
}

}  // namespace

EnvironmentLock lock_facts(const Snapshot& snapshot) {
  const EnvironmentFacts facts = facts_of(snapshot);
  EnvironmentLock lock;
  lock.tool_version = kToolVersion;
  lock.machine = machine_of(snapshot, facts);
  const Python& python = snapshot.python.value;
  lock.python = {python.version, python.implementation, python.soabi, python.free_threaded};
  const Torch& torch = snapshot.torch.value;
  if (snapshot.torch.present())
    lock.torch = LockedTorch{torch.version,    torch.cuda,         torch.hip,  torch.git,
                             torch.string_abi, torch.cxx_standard, torch.debug};
  lock.distributions = distributions_of(snapshot);
  return lock;
}

LockedLibrary locked_library(const Host& host, const std::string& path) {
  const Extension file = probes::inspect_extension(host, path);
  LockedLibrary library;
  library.size = file.size;
  library.state = file.file_state;
  library.machine = file.machine;
  library.soname = file.soname;
  library.build_id = file.build_id;
  library.needed = file.needed;
  library.glibc_min = file.glibc_min;
  library.glibcxx_min = file.glibcxx_min;
  library.cuda_major = file.cuda_major;
  library.string_abi = file.string_abi;
  library.pybind_internals = file.pybind_internals;
  library.code = code_of(file.images);
  return library;
}

Result<void> lock_files(const Host& host, const Snapshot& snapshot, HashCache& cache,
                        const HashProgress& progress, EnvironmentLock& lock) {
  const PlacedLibraries placed = placed_libraries(host, snapshot);
  if (!placed.unreadable.empty())
    return Error{Errc::PermissionDenied,
                 message("part of the environment cannot be read: {}", placed.unreadable[0]),
                 message("run it as a user with read permission")};
  std::vector<std::string> paths;
  for (const PlacedLibrary& one : placed.libraries) paths.push_back(one.path);
  const auto hashed = hash_files(host, paths, cache, progress);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    if (!hashed[i].sha256) return hashed[i].sha256.error();
    LockedLibrary library = locked_library(host, paths[i]);
    library.path = placed.libraries[i].inner;
    library.distribution = placed.libraries[i].distribution;
    library.size = hashed[i].size;
    library.sha256 = *hashed[i].sha256;
    lock.libraries.push_back(std::move(library));
    // read_manifest() opens the path on this machine, which is not the same file under --root.
    if (host.is_live()) add_module(placed.libraries[i], lock);
  }
  std::ranges::sort(lock.modules, {}, &LockedModule::module);
  return {};
}

}  // namespace scankit::envspec

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "builder/compile/cache.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/checks/snapshot_queries.h"
#include "doctor/cli/commands.h"
#include "doctor/model/snapshot.h"
#include "doctor/probes/extensions/extensions.h"
#include "doctor/probes/machine/system.h"
#include "doctor/probes/packages/repairs.h"
#include "doctor/probes/python/python.h"
#include "envspec/check/check.h"
#include "envspec/diff/diff.h"
#include "envspec/lock/hash_files.h"
#include "envspec/lock/install_metadata.h"

// Brings the five kinds of operands under common names, and reads environments for all commands
// of `scankit env` (look_at() at the end). The names are those of the spec's fields where a spec
// has the field.
namespace scankit::envspec {
namespace {

std::string sorted_list(std::vector<std::string> items) {
  std::ranges::sort(items);
  return join(items);
}

// An empty value stays out, so that it never differs from a side without the field.
void put(Side& side, const std::string& name, const std::string& text) {
  if (!text.empty()) side.values[name] = {.text = text, .range = {}, .why_unknown = "", .extension = ""};
}

// A fact that could not be read becomes an operand with the reason; an absent one stays out.
template <class T>
bool put_known(Side& side, const std::string& name, const Probed<T>& fact) {
  const bool unknown = fact.state == ProbeState::Failed || fact.state == ProbeState::NotRun;
  if (unknown) side.values[name].why_unknown = why_missing(fact);
  return fact.present();
}

void put(Side& side, const std::string& name, const Probed<std::string>& fact) {
  if (put_known(side, name, fact)) put(side, name, fact.value);
}

// An empty range or list demands nothing and stays out.
void put(Side& side, const std::string& name, const VersionRange& range) {
  if (!range.empty())
    side.values[name] = {.text = range.text(), .range = range, .why_unknown = "", .extension = ""};
}
void put_demanded(Side& side, const std::string& name, const std::vector<std::string>& items) {
  if (!items.empty())
    side.values[name] = {
        .text = sorted_list(items), .range = {}, .whole = false, .why_unknown = "", .extension = ""};
}

// Ties all fields below `path` to their extension.
void mark(Side& side, const std::string& module, const std::string& path) {
  side.extensions.insert(module);
  for (auto& [name, value] : side.values)
    if (name.starts_with(path)) value.extension = module;
}

}  // namespace

Side operand_of_spec(const Spec& spec) {
  Side side;
  side.kind = "spec";
  put(side, "driver", spec.driver);
  if (!spec.gpus.empty()) put(side, "gpus", sorted_list(spec.gpus));
  put(side, "python.implementation", spec.implementation);
  put(side, "python.version", spec.python);
  put(side, "torch.version", spec.torch);
  put(side, "torch.cuda", spec.cuda);
  put(side, "torch.string_abi", spec.string_abi);
  for (const ExtensionSpec& one : spec.extensions) {
    const std::string path = "extensions." + one.module + ".";
    put(side, path + "distribution", one.distribution.empty() ? "" : normalized_name(one.distribution));
    put(side, path + "version", one.version);
    put(side, path + "torch_abi", one.torch_abi);
    put(side, path + "string_abi", one.string_abi);
    put(side, path + "cuda", one.cuda);
    put(side, path + "python_tag", one.python_tag);
    put_demanded(side, path + "code", one.code);
    mark(side, one.module, path);
    if (!one.package.empty()) put(side, "packages." + normalized_name(one.package), one.package_version);
  }
  return side;
}

Side operand_of_lock(const EnvironmentLock& lock) {
  Side side;
  side.kind = "lock";
  put(side, "driver", lock.machine.driver);
  put(side, "gpus", sorted_list(lock.machine.gpus));
  put(side, "python.implementation", lock.python.implementation);
  put(side, "python.version", lock.python.version);
  if (lock.torch) {
    put(side, "torch.version", lock.torch->version);
    put(side, "torch.cuda", lock.torch->cuda);
    put(side, "torch.string_abi", lock.torch->string_abi);
  }
  for (const LockedDistribution& one : lock.distributions) put(side, "packages." + one.name, one.version);
  for (const LockedLibrary& one : lock.libraries) put(side, "files." + one.path, one.sha256);
  side.tells_files = true;
  return side;
}

Side operand_of_record(const EnvironmentRecord& record) {
  Side side;
  side.kind = "record";
  put(side, "python.version", record.python);
  put(side, "torch.version", record.torch);
  for (const RecordedPackage& one : record.packages) put(side, "packages." + one.name, one.version);
  for (const auto& [name, hash] : record.content) put(side, "content." + name, hash);
  for (const RecordedFile& one : record.libraries) put(side, "files." + one.path, one.sha256);
  side.tells_files = true;
  side.tells_packages = !record.packages.empty() || record.content.empty();
  return side;
}

Side operand_of_facts(const EnvironmentFacts& facts) {
  Side side;
  put(side, "driver", facts.driver);
  if (put_known(side, "gpus", facts.gpus)) put(side, "gpus", sorted_list(facts.gpus.value));
  put(side, "python.implementation", facts.implementation);
  put(side, "python.version", facts.python);
  put(side, "torch.version", facts.torch);
  put(side, "torch.cuda", facts.cuda);
  put(side, "torch.string_abi", facts.string_abi);
  for (const Distribution& one : facts.distributions.value)
    put(side, "packages." + normalized_name(one.name), one.version);
  for (const ExtensionFacts& one : facts.extensions.value) {
    const std::string path = "extensions." + one.module + ".";
    put(side, path + "distribution", one.distribution.empty() ? "" : normalized_name(one.distribution));
    put(side, path + "version", one.version);
    put(side, path + "torch_abi", one.torch_abi);
    put(side, path + "string_abi", one.string_abi);
    put(side, path + "cuda", one.cuda_major);
    put(side, path + "python_tag", one.python_tag);
    put(side, path + "code", sorted_list(one.code));
    mark(side, one.module, path);
  }
  if (facts.extensions.present()) side.looked_for = {facts.modules.begin(), facts.modules.end()};
  return side;
}

namespace {

constexpr std::size_t kOperandLimit = 256u << 20;

// Keeps the subject, so that put_files() can read its files later.
Result<Side> of_environment(const std::string& python) {
  SubjectOptions options;
  options.python = python;
  SCANKIT_TRY(Subject subject, look_at(options));
  if (!subject.snapshot.python.present()) return Error{Errc::NotFound, subject.snapshot.python.note, ""};
  Side side = operand_of_facts(subject.facts);
  side.kind = "environment";
  side.here = std::make_shared<const Subject>(std::move(subject));
  return side;
}

// Both kinds of files are JSON with a key "schema": text ("1.0") in a lock, a number in a snapshot. A look
// at the first such key avoids parsing up to 256 MB twice.
bool is_lock(const std::string& text) {
  constexpr std::string_view kKey = "\"schema\"";
  const auto key = text.find(kKey);
  const auto value = key == std::string::npos ? key : text.find_first_not_of(" \t\r\n:", key + kKey.size());
  return value != std::string::npos && text[value] == '"';
}

// A record's schema is a number like that of a snapshot, which has no such key near its begin.
bool is_record(const std::string& text) {
  constexpr std::size_t kHead = 1024;
  return text.substr(0, kHead).find("\"lock_sha256\"") != std::string::npos;
}

Result<Side> of_json(const std::string& text, const std::string& path) {
  if (is_record(text)) {
    SCANKIT_TRY(const EnvironmentRecord read, record_from_json(text, path));
    return operand_of_record(read);
  }
  if (is_lock(text)) {
    SCANKIT_TRY(const EnvironmentLock read, lock_from_json(text, path));
    return operand_of_lock(read);
  }
  auto snapshot = snapshot_from_json(text);
  if (!snapshot)
    return Error{snapshot.error().code,
                 message("{} is neither a lock, a record nor a snapshot: {}", path, snapshot.error().message),
                 message("make one with scankit env lock or scankit snapshot")};
  Side side = operand_of_facts(facts_of(*snapshot));
  side.kind = "snapshot";
  return side;
}

}  // namespace

// JSON starts with a brace; anything else is taken for the YAML of a spec, whose parser says
// what is wrong.
Result<Side> operand_of_text(const std::string& text, const std::string& path) {
  const auto start = text.find_first_not_of(" \t\r\n");
  const bool json = start != std::string::npos && text[start] == '{';
  if (json) return of_json(text, path);
  SCANKIT_TRY(const Spec spec, parse_spec(text, path));
  return operand_of_spec(spec);
}

namespace {

Result<Side> of_file(const std::string& path) {
  SCANKIT_TRY(const std::string text, read_whole_file(path, kOperandLimit, Accept::FilesAndPipes));
  return operand_of_text(text, path);
}

}  // namespace

Result<Side> read_operand(const std::string& path) {
  const std::string place = path_normalize(path_join(current_directory(), path));
  const auto info = make_real_host()->stat(place);
  if (!info)
    return Error{Errc::NotFound, message("{} does not exist", path),
                 message("give a spec, a lock, a record, a snapshot, a Python or its directory")};
  constexpr unsigned kExecutable = 0111;
  // A program is taken for a Python, a directory for a virtual environment or a prefix.
  const bool environment = info->kind == FileKind::Directory ||
                           (info->kind == FileKind::Regular && (info->mode & kExecutable) != 0);
  auto side = environment ? of_environment(place) : of_file(path);
  if (side) side->name = path;
  return side;
}

void put_files(Side& side, const std::string& cache_dir) {
  if (!side.here || !side.here->host) return;
  const PlacedLibraries placed = placed_libraries(*side.here->host, side.here->snapshot);
  std::vector<std::string> paths;
  for (const PlacedLibrary& one : placed.libraries) paths.push_back(one.path);
  const auto folder = compile::usable_cache_folder(cache_dir);  // without one every file is read again
  HashCache cache(folder ? *folder : "");
  const auto hashed = hash_files(*side.here->host, paths, cache);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    DiffOperand& value = side.values["files." + placed.libraries[i].inner];
    if (hashed[i].sha256)
      value.text = *hashed[i].sha256;
    else
      value.why_unknown = hashed[i].sha256.error().message;
  }
  // A directory that could not be read makes one unknown field "files".
  for (const Message& unreadable : placed.unreadable) side.values["files"].why_unknown = unreadable;
  side.tells_files = true;
}

namespace {

// The name by which import finds a file: "torchvision._C" of ".../site-packages/torchvision/_C.so". "" for
// a file outside of sys.path, or below a directory that is not a package (a "-" or "." in its name).
std::string module_of(const Python& python, const std::string& path) {
  for (const PathEntry& entry : python.sys_path) {
    if (entry.path.empty() || !path.starts_with(entry.path + "/")) continue;
    std::string name = path.substr(entry.path.size() + 1);
    const auto slash = name.rfind('/');
    name.erase(std::min(name.find('.', slash == std::string::npos ? 0 : slash), name.size()));
    if (name.find('.') != std::string::npos || name.find('-') != std::string::npos) return "";
    std::ranges::replace(name, '/', '.');
    return name;
  }
  return "";
}

// The extensions that `env init` writes into a spec: linked to torch, importable by this Python, and not
// part of torch itself.
std::vector<std::string> modules_that_use_torch(const Snapshot& snapshot) {
  std::vector<std::string> modules;
  for (const AuditedFile& file : snapshot.audit.value.files) {
    if (!file.uses_torch || file.distribution == "torch" || !file.not_for_this_python.empty()) continue;
    if (std::string name = module_of(snapshot.python.value, file.path); !name.empty())
      modules.push_back(std::move(name));
  }
  return modules;
}

// Probes further modules after the snapshot was taken, and adds them to it. Modules that it already
// has are skipped.
void also_look_for(const Host& host, const std::vector<std::string>& wanted, Snapshot& snapshot) {
  std::vector<std::string> more;
  for (const std::string& module : wanted) {
    if (std::ranges::find(snapshot.modules, module) != snapshot.modules.end()) continue;
    snapshot.modules.push_back(module);
    more.push_back(module);
  }
  if (more.empty() || !snapshot.extensions.present()) return;
  std::vector<TorchNeed> torch_missing;
  auto found = probes::probe_extensions(host, snapshot, more, torch_missing);
  std::ranges::move(found.value, std::back_inserter(snapshot.extensions.value));
  if (!found.present()) snapshot.extensions.state = found.state;
  if (!found.note.empty()) snapshot.extensions.note = found.note;
}

// NVML takes longer than all other probes together. It knows more only about a driver whose version /proc
// does not tell, or a GPU that is missing in the table of PCI ids.
bool needs_nvml(const Host& host) {
  const auto gpus = probes::probe_gpus(host);
  const auto driver = probes::probe_driver(host);
  return (driver.present() && driver.value.version.empty()) ||
         std::ranges::any_of(gpus.value, [](const Gpu& gpu) { return gpu.sm.empty(); });
}

Result<Subject> look_at_files(const SubjectOptions& options) {
  cli::EnvironmentOptions asked;
  asked.python = options.python;
  // Nothing of the environment is run: a spec, a lock and a diff describe files.
  asked.imports = probes::ImportPolicy::Never;
  asked.all = options.find_extensions;
  if (!options.root.empty()) {
    SCANKIT_TRY(asked.root, probes::root_folder(options.root));
  }
  Subject subject;
  subject.host = make_real_host(asked.root);
  asked.ask_nvml = needs_nvml(*subject.host);
  asked.needs_python = options.needs_python;
  SCANKIT_TRY(cli::Facts gathered, cli::gather(asked));
  if (const auto broken = gathered.snapshot.broken_environment) return probes::error_of(*broken);
  subject.snapshot = std::move(gathered.snapshot);
  subject.notes = std::move(gathered.notes);
  subject.status = gathered.status;
  if (options.find_extensions)
    also_look_for(*subject.host, modules_that_use_torch(subject.snapshot), subject.snapshot);
  also_look_for(*subject.host, options.modules, subject.snapshot);
  return subject;
}

}  // namespace

Result<Subject> look_at(const SubjectOptions& options) {
  Subject subject;
  if (options.from.empty()) {
    SCANKIT_TRY(subject, look_at_files(options));
  } else {
    SCANKIT_TRY(subject.snapshot, cli::stored_snapshot(options.from));
    subject.snapshot.read_from = options.from;
  }
  subject.facts = facts_of(subject.snapshot);
  return subject;
}

}  // namespace scankit::envspec

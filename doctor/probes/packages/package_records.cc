// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deque>
#include <limits>
#include <optional>
#include <set>

#include "doctor/base/files.h"
#include "doctor/base/text.h"
#include "doctor/base/version.h"
#include "doctor/elf/image.h"
#include "doctor/knowledge/known_packages.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/probes/packages/packages.h"
#include "doctor/probes/packages/requirements.h"
#include "doctor/probes/python/python_text.h"
#include "doctor/probes/python/sys_path.h"

// What the records of installed packages say: whether a package was built with its compiled module, which
// requirements the installed releases do not meet, and which packages two distributions claim.
namespace scankit::probes {
namespace {

constexpr std::size_t kLongestRecord = 4u << 20, kLongestMetadata = 1u << 20, kMostUnmet = 40;
constexpr std::uint64_t kLongestSource = 1u << 20;
constexpr int kDeepestAsker = 2;  // the package, and what it requires itself

std::string read_or_empty(const Host& host, const std::string& path, std::size_t limit) {
  return host.read_file(path, limit).value_or("");
}

// Whether a line of RECORD (PEP 376: path, hash, size) begins with `path` as one of whole components.
bool lists(std::string_view record, std::string_view start) {
  for (auto at = record.find(start); at != std::string_view::npos; at = record.find(start, at + 1))
    if (at == 0 || record[at - 1] == '\n') return true;
  return false;
}

// The words "MAMBA_KEEP_CUDA_BUILD=TRUE" in a message of the package: a variable that asks for the module.
// FORCE and SKIP are switches of the other rule, by which the module is built unless somebody declines.
std::string opt_in_of(std::string_view line) {
  constexpr std::string_view kSet = "=TRUE";
  for (auto at = line.find(kSet); at != std::string_view::npos; at = line.find(kSet, at + 1)) {
    auto from = at;
    while (from > 0 && (is_identifier_char(line[from - 1]))) --from;
    const std::string_view name = line.substr(from, at - from);
    const auto has = [&](std::string_view word) { return name.find(word) != std::string_view::npos; };
    if (has("BUILD") && !has("FORCE") && !has("SKIP")) return std::string(name);
  }
  return {};
}

// One that has a compiled module of its own: mamba_ssm and causal_conv1d, by the lines that import it.
void read_build(const Host& host, const Snapshot& snapshot, const Importer& importer, Packages& packages) {
  const Distribution* owner = find_distribution(snapshot.distributions.value, importer.package);
  const bool known = std::ranges::any_of(packages.builds, [&](const PackageBuild& each) {
    return each.package == importer.package && each.module == importer.module;
  });
  if (owner == nullptr || owner->editable || known) return;
  PackageBuild build{.package = importer.package,
                     .distribution = owner->name,
                     .version = owner->version,
                     .module = importer.module,
                     .wheel = path_join(owner->path, "WHEEL")};
  const std::string wheel = read_or_empty(host, build.wheel, 1u << 16);
  for (const std::string_view line : lines_of(wheel))
    if (line.starts_with("Tag:")) build.tags.emplace_back(trimmed(line.substr(4)));
  if (build.tags.empty()) return;  // conda and Debian keep no such file
  build.lists_module =
      lists(read_or_empty(host, path_join(owner->path, "RECORD"), kLongestRecord), importer.module + ".");
  const std::string source = read_or_empty(host, importer.file, kLongestSource);
  unsigned number = 0;
  for (const std::string_view line : lines_of(source)) {
    ++number;
    build.opt_in = opt_in_of(line);
    if (build.opt_in.empty()) continue;
    build.file = importer.file;
    build.line = number;
    break;
  }
  packages.builds.push_back(std::move(build));
}

// What a package asks for, and what its direct requirements ask for, of what is installed in another release.
// torch's own requirements are the subject of other facts, but not what others ask of torch.
class UnmetSearch {
 public:
  UnmetSearch(const Host& host, const Snapshot& snapshot, Packages& packages)
      : host_(host), snapshot_(snapshot), packages_(packages) {}

  void of_root(const std::string& package) {
    const Distribution* root = find_distribution(snapshot_.distributions.value, package);
    if (root == nullptr) return;
    std::deque<std::pair<const Distribution*, int>> queue{{root, 1}};
    std::set<const Distribution*> asked{root};
    while (!queue.empty()) {
      const auto [each, depth] = queue.front();
      queue.pop_front();
      const std::string metadata = read_or_empty(host_, path_join(each->path, "METADATA"), kLongestMetadata);
      for (const RequirementLine& line : requirement_lines(metadata)) {
        if (marker_holds(line.marker, snapshot_.python.value, "", {}) != true) continue;
        const Distribution* there = find_distribution(snapshot_.distributions.value, line.name);
        if (there == nullptr) continue;
        if (!meets(there->version, line.specifier)) note(package, *each, line, *there);
        if (depth < kDeepestAsker && normalized_name(there->name) != "torch" && asked.insert(there).second)
          queue.emplace_back(there, depth + 1);
      }
    }
  }

 private:
  void note(const std::string& root, const Distribution& asks, const RequirementLine& line,
            const Distribution& there) {
    const bool known = std::ranges::any_of(packages_.unmet, [&](const UnmetRequirement& each) {
      return each.distribution == asks.name && each.requirement == line.text();
    });
    if (!known && packages_.unmet.size() < kMostUnmet)
      packages_.unmet.push_back({asks.name, asks.version, root, line.text(), there.name, there.version});
  }

  const Host& host_;
  const Snapshot& snapshot_;
  Packages& packages_;
};

// The packages around mamba whose names others use too, with the part that the names of their distributions
// have in common: triton is published as triton, pytorch-triton, pytorch-triton-rocm and triton-nightly.
struct Claimed {
  std::string package, stem;
};
const std::vector<Claimed>& claimed_packages() {
  static const std::vector<Claimed> all{
      {"triton", "triton"},   {"tvm_ffi", "tvm"},     {"tilelang", "tilelang"},   {"quack", "quack"},
      {"cutlass", "cutlass"}, {"mamba_ssm", "mamba"}, {"causal_conv1d", "conv1d"}};
  return all;
}

// The packages of that name in the folders of sys.path, in its order. What lies in the current directory or
// in one of PYTHONPATH was put before the others on purpose.
std::vector<std::string> copies_on_path(const Host& host, const Python& python, const std::string& package) {
  std::vector<std::string> found;
  for (const PathEntry& entry : python.sys_path) {
    if (!entry.exists || entry.origin == "cwd" || entry.origin == "pythonpath") continue;
    std::string file = path_join(path_join(entry.path, package), "__init__.py");
    if (is_regular_file(host, file) && std::ranges::find(found, file) == found.end())
      found.push_back(std::move(file));
  }
  return found;
}

void read_shared(const Host& host, const Snapshot& snapshot, const Claimed& claimed, Packages& packages) {
  const auto copies = copies_on_path(host, snapshot.python.value, claimed.package);
  if (copies.empty()) return;
  SharedPackage shared{claimed.package, copies.front(), {}, {}, copies.size() > 1 ? copies[1] : ""};
  const std::string site = path_dirname(path_dirname(copies.front()));
  const std::string listed = claimed.package + "/__init__.py,";
  for (const Distribution& each : snapshot.distributions.value) {
    if (path_dirname(each.path) != site || normalized_name(each.name).find(claimed.stem) == std::string::npos)
      continue;
    const std::string record = path_join(each.path, "RECORD");
    if (!lists(read_or_empty(host, record, kLongestRecord), listed)) continue;
    shared.owners.push_back(each.name);
    shared.records.push_back(record);
  }
  if (shared.owners.size() > 1 || !shared.hidden.empty()) packages.shared.push_back(std::move(shared));
}

}  // namespace

void read_records(const Host& host, const Snapshot& so_far, Packages& packages) {
  for (const Importer& importer : so_far.importers.value)
    if (importer.package == "mamba_ssm" || importer.package == "causal_conv1d")
      read_build(host, so_far, importer, packages);
  UnmetSearch search(host, so_far, packages);
  for (const PackageFound& package : packages.found)
    if (!package.current_folder) search.of_root(package.name);
  for (const Claimed& claimed : claimed_packages()) read_shared(host, so_far, claimed, packages);
}

namespace {

constexpr std::uint64_t kMostBinaryBytes = 32u << 20;

// pybind11 keeps "({torch.Tensor}, {Optional[torch.Tensor]}, {bool}) -> torch.Tensor" of each bound function
// as one constant: detail/descr.h and pybind11.h (cpp_function::initialize), 2.2 to 3.0. One pair of braces
// an argument.
void read_signature(std::string_view text, std::set<unsigned>& arguments, bool& open_ended) {
  unsigned count = 0;
  int depth = 0;
  for (std::size_t i = 1; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '{' && depth++ == 0) ++count;
    if (c == '}' && --depth < 0) return;
    if (depth > 0) continue;
    if (c == '*') open_ended = true;
    if (c == ')') {
      if (text.substr(i).starts_with(") -> ")) arguments.insert(count);
      return;
    }
    if (c != '}' && c != ',' && c != ' ' && c != '*' && (c < 'a' || c > 'z')) return;
  }
}

bool plain(char c) { return c >= 0x20 && c < 0x7f; }

// The printable text around data[at], up to a colon on each side: paths in lists are separated by them.
std::string path_around(std::string_view data, std::size_t at) {
  constexpr std::size_t kLongest = 300;
  std::size_t from = at, end = at;
  while (from > 0 && at - from < kLongest && plain(data[from - 1]) && data[from - 1] != ':') --from;
  while (end < data.size() && end - at < kLongest && plain(data[end]) && data[end] != ':') ++end;
  return std::string(data.substr(from, end - from));
}

}  // namespace

BinaryTexts binary_texts(std::string_view data) {
  BinaryTexts texts;
  std::set<unsigned> arguments;
  bool binds_tensors = false;
  for (auto at = data.find(") -> "); at != std::string_view::npos; at = data.find(") -> ", at + 5)) {
    std::size_t from = at;
    while (from > 0 && at - from < 4096 && data[from - 1] != '\0') --from;
    std::size_t end = at;
    while (end < data.size() && end - at < 1024 && data[end] != '\0') ++end;
    const std::string_view text = data.substr(from, end - from);
    if (text.starts_with("({") || text.starts_with("() -> ") || text.starts_with("(*"))
      read_signature(text, arguments, texts.open_ended);
    binds_tensors = binds_tensors || text.find("torch.Tensor") != std::string_view::npos;
  }
  // pybind11's own helpers leave "({object}) -> None" in every file that includes torch's Python headers,
  // also in one that offers its functions by a plain PyMethodDef.
  if (binds_tensors) texts.arguments.assign(arguments.begin(), arguments.end());
  // cast.h: what arg_v says of a default value that it cannot convert. Without arg_v there is no default.
  texts.defaults = data.find("arg(): could not convert default argument") != std::string_view::npos;
  // pip's BuildEnvironment: TMPDIR/pip-build-env-RANDOM/overlay/lib/pythonX.Y/site-packages.
  if (const auto at = data.find("/pip-build-env-"); at != std::string_view::npos)
    texts.build_trace = path_around(data, at);
  return texts;
}

// Strings are in .rodata and, merged by the compiler, in .rodata.str1.1 and its like. Nothing where the file
// is not a whole ELF file, or was stripped of its section headers.
std::optional<BinaryTexts> read_binary_texts(const Host& host, const std::string& path) {
  auto source = host.open(path);
  if (!source) return std::nullopt;
  const std::shared_ptr<const ByteSource> bytes = std::move(*source);
  const auto image = elf::Image::open(bytes);
  if (!image) return std::nullopt;
  std::string data;
  for (const elf::Section& section : image->sections()) {
    if (!section.name.starts_with(".rodata") || data.size() + section.size > kMostBinaryBytes) continue;
    std::string part(section.size, '\0');
    if (!bytes->read(section.offset, part.data(), part.size())) return std::nullopt;
    data += part;
    data += '\0';
  }
  if (data.empty()) return std::nullopt;
  return binary_texts(data);
}

namespace {

// What one run of pip installs, it writes within minutes: unpacking torch's CUDA libraries takes the longest.
constexpr std::int64_t kOneRun = 900;

// RECORD is written at the end of an installation; the files
// themselves may keep the dates of an installer's cache.
std::int64_t written(const Host& host, const std::string& path) {
  const auto info = host.stat(path);
  return info ? info->mtime_ns / 1'000'000'000 : 0;
}
std::int64_t installed_at(const Host& host, const Distribution& distribution) {
  return written(host, path_join(distribution.path, "RECORD"));
}
// pip leaves this file where its user named the distribution on the command line (PEP 376; pip since 20.2).
bool was_named(const Host& host, const Distribution& distribution) {
  return host.exists(path_join(distribution.path, "REQUESTED"));
}

void read_modules(const Host& host, const Snapshot& snapshot, Packages& packages) {
  for (const Extension& file : snapshot.extensions.value) {
    if (!file.selected || file.file_state != "elf") continue;
    ModuleTexts texts{file.module, file.path, false, {}, false, false, "", 0};
    const Distribution* owner = file.distribution.empty()
                                    ? nullptr
                                    : find_distribution(snapshot.distributions.value, file.distribution);
    if (owner != nullptr) texts.installed = installed_at(host, *owner);
    if (texts.installed == 0) texts.installed = written(host, file.path);
    if (auto read = read_binary_texts(host, file.path)) {
      texts.read = true;
      texts.arguments = std::move(read->arguments);
      texts.defaults = read->defaults;
      texts.open_ended = read->open_ended;
      texts.build_trace = std::move(read->build_trace);
    }
    packages.texts.push_back(std::move(texts));
  }
}

// Requirements are installed before what requires them, so the next named distribution after torch brought
// it. "" where pip did not install torch, where its user named torch, or where nothing else followed in
// that run.
std::string what_brought(const Host& host, const Snapshot& snapshot, const Distribution& torch,
                         std::int64_t torch_installed) {
  if (torch.installer != "pip" || torch_installed == 0 || was_named(host, torch)) return {};
  const Distribution* best = nullptr;
  std::int64_t soonest = std::numeric_limits<std::int64_t>::max();
  for (const Distribution& each : snapshot.distributions.value) {
    const std::int64_t at = &each == &torch ? 0 : installed_at(host, each);
    if (at < torch_installed || at > torch_installed + kOneRun || at >= soonest || !was_named(host, each))
      continue;
    best = &each;
    soonest = at;
  }
  return best == nullptr ? "" : best->name;
}

void read_torch_record(const Host& host, const Snapshot& snapshot, Packages& packages) {
  const Distribution* torch = find_distribution(snapshot.distributions.value, "torch");
  if (torch == nullptr) return;
  packages.torch_record = path_join(torch->path, "RECORD");
  packages.torch_installed = installed_at(host, *torch);
  packages.torch_brought_by = what_brought(host, snapshot, *torch, packages.torch_installed);
  const auto metadata = read_head(host, path_join(torch->path, "METADATA"), 1u << 16);
  if (!metadata) return;
  for (const std::string_view line : lines_of(*metadata)) {
    constexpr std::string_view kField = "Requires-Dist: ", kTriton = "triton";
    if (line.empty()) break;  // the description follows
    if (!line.starts_with(kField) || !line.substr(kField.size()).starts_with(kTriton)) continue;
    const std::string_view requirement = line.substr(kField.size());
    // Not "triton-windows" and its like, whose names only begin in this way.
    const char next = requirement.size() > kTriton.size() ? requirement[kTriton.size()] : ' ';
    if (next == ' ' || next == '=' || next == '<' || next == '>' || next == '(' || next == '~' || next == '!')
      packages.triton_pin = requirement;
  }
}

}  // namespace

void read_installation(const Host& host, const Snapshot& so_far, Packages& packages) {
  read_modules(host, so_far, packages);
  read_torch_record(host, so_far, packages);
}

}  // namespace scankit::probes

// SPDX-License-Identifier: Apache-2.0
// What the records of installed packages say: whether a package was built with its compiled module, which
// requirements the installed releases do not meet, and which packages two distributions claim.
#include <algorithm>
#include <deque>
#include <optional>
#include <set>

#include "doctor/base/files.h"
#include "doctor/base/text.h"
#include "doctor/base/version.h"
#include "doctor/knowledge/known_packages.h"
#include "doctor/probes/packages/distributions.h"
#include "doctor/probes/packages/packages.h"
#include "doctor/probes/packages/requirements.h"
#include "doctor/probes/python/python_text.h"
#include "doctor/probes/python/sys_path.h"

namespace scankit {
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

}  // namespace scankit

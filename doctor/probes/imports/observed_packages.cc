// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "doctor/probes/imports/observed.h"

namespace scankit::probes {
namespace {

// Each is a child that imports torch: a handful is what an environment has (importers.yaml knows twelve).
constexpr std::size_t kMostPackages = 4, kMostTargets = 40;

using Names = std::map<std::string, std::set<std::string>>;  // of a module, what is taken from it

// "module:name,other", as observed_program.h reads it.
std::string request(const std::string& module, const std::set<std::string>& names) {
  std::string text = module;
  char before = ':';
  for (const std::string& name : names) {
    text += before + name;
    before = ',';
  }
  return text;
}

// Each name that the package takes from a sibling which is installed. What the files leave open is asked too.
Names taken_by(const Snapshot& snapshot, const std::string& package) {
  Names names;
  for (const PackageImport& import : snapshot.packages.value.imports) {
    if (import.package != package || import.offered == "absent" || import.offered == "module") continue;
    if (names.size() >= kMostTargets && !names.contains(import.target)) continue;
    auto& asked = names[import.target];
    if (!import.name.empty() && import.name != "*") asked.insert(import.name);
  }
  for (const PackageCall& call : snapshot.packages.value.calls) {
    const auto dot = call.callee.rfind('.');
    const auto target = call.package == package ? names.find(call.callee.substr(0, dot)) : names.end();
    if (target != names.end()) target->second.insert(call.callee.substr(dot + 1));
  }
  return names;
}

}  // namespace

std::vector<std::vector<std::string>> package_imports(const Snapshot& snapshot, bool with_torch) {
  std::vector<std::vector<std::string>> tasks;
  for (const PackageFound& package : snapshot.packages.value.found) {
    if (tasks.size() >= kMostPackages) break;
    // The package before all else: what runs before it could be what makes it work.
    std::vector<std::string> task{"?" + package.name};
    if (with_torch) task.emplace_back("torch");
    for (const auto& [target, names] : taken_by(snapshot, package.name))
      task.push_back("?" + request(target, names));
    tasks.push_back(std::move(task));
  }
  return tasks;
}

std::string with_called_names(const Snapshot& snapshot, const std::string& module) {
  std::set<std::string> names;
  for (const PackageCall& call : snapshot.packages.value.calls)
    if (call.callee.starts_with(module + ".") &&
        call.callee.find('.', module.size() + 1) == std::string::npos)
      names.insert(call.callee.substr(module.size() + 1));
  return request(module, names);
}

std::string bare_name(const std::string& request) {
  const auto from = request.find_first_not_of('?');
  return from == std::string::npos ? "" : request.substr(from, request.find(':') - from);
}

// torch's own observation comes from the modules' children. An observation that is known already is not
// added again.
void take_package(const std::string& package, const std::vector<Observation>& imports,
                  std::vector<Observation>& seen) {
  for (std::size_t i = 0; i < imports.size(); ++i) {
    if (imports[i].module == "torch") continue;
    const std::string variant = imports[i].module == package ? "package" : "sibling";
    const bool known = std::ranges::any_of(seen, [&](const Observation& old) {
      return old.module == imports[i].module && old.variant == variant && old.lacks == imports[i].lacks;
    });
    if (known) continue;
    seen.push_back(imports[i]);
    seen.back().variant = variant;
  }
}

}  // namespace scankit::probes

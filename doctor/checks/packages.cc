// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/packages.h"

#include <algorithm>

#include "doctor/base/message.h"
#include "doctor/base/text.h"
#include "doctor/checks/snapshot_queries.h"

namespace scankit::checks {
namespace {

std::string observation_pointer(const Snapshot& snapshot, const Observation& seen) {
  return "/observations/value/" + std::to_string(&seen - snapshot.observations.value.data());
}
std::string import_pointer(std::size_t import) { return "/packages/value/imports/" + std::to_string(import); }

// The failure of an import as a clause.
Message what_it_said(const Observation& seen) {
  if (seen.outcome == "timeout") return message("its import does not return");
  if (seen.outcome == "crashed") return message("its import kills the process");
  return message("its import fails with {}: {}", seen.exception, seen.message);
}

// From an import of the target in a child, without the guard that the package puts around it.
std::optional<Offering> seen_offering(const Snapshot& snapshot, const PackageImport& import) {
  if (!snapshot.observations.present()) return std::nullopt;
  for (const Observation& seen : snapshot.observations.value) {
    if (seen.module != import.target || (seen.variant != "sibling" && seen.variant != "package")) continue;
    const std::string pointer = observation_pointer(snapshot, seen);
    if (seen.outcome == "ok") {
      const auto lacking = std::ranges::find(seen.lacks, import.name);
      if (lacking == seen.lacks.end()) return Offering{Offer::Yes, "", "", {}};
      return Offering{Offer::No,
                      message("an import shows that it has no {}", import.name),
                      "",
                      {{pointer + "/lacks/" + std::to_string(lacking - seen.lacks.begin()), import.name}}};
    }
    // Which package is missing decides: the target itself, or another one that the target needs. triton
    // and the modules have checks of their own.
    const std::string lacks = missing_package(seen);
    const bool itself = lacks == import.target_package;
    const bool other =
        lacks != "triton" && std::ranges::find(snapshot.modules, lacks) == snapshot.modules.end();
    return Offering{itself ? Offer::Absent : Offer::No,
                    what_it_said(seen),
                    "",
                    {{pointer + "/outcome", seen.outcome}, {pointer + "/message", english(seen.message)}},
                    other && !itself ? lacks : ""};
  }
  return std::nullopt;
}

// A module under diagnosis: what its import has shown, else what its files say.
Offering of_module(const Snapshot& snapshot, const std::string& module) {
  const auto copy = selected_copy(snapshot, module);
  if (const Observation* seen = deciding_import(snapshot, module); seen != nullptr && copy) {
    const std::string pointer = observation_pointer(snapshot, *seen);
    if (seen->outcome == "ok") return {Offer::Yes, "", module, {}};
    return {Offer::No,
            what_it_said(*seen),
            module,
            {{pointer + "/outcome", seen->outcome}, {pointer + "/message", english(seen->message)}}};
  }
  if (copy) {
    const auto obstacle = static_obstacle(snapshot, **copy);
    if (!obstacle) return {Offer::Unknown, "", module, {}};
    if (obstacle->empty()) return {Offer::Yes, "", module, {}};
    return {Offer::No,
            message("{} cannot be loaded: {}", (*copy)->path, *obstacle),
            module,
            {copy->at("path", (*copy)->path)}};
  }
  // There are files of the module, but none that import takes.
  for (const Copy& other : copies(snapshot))
    if (other->module == module && other->sys_path_index >= 0)
      return {Offer::No,
              message("import uses none of the files of {}", module),
              module,
              {other.at("path", other->path)}};
  return {Offer::Absent, message("{} is not installed", module), module, {}};
}

// A compiled module that the package imports without a guard and that does not load; `import
// causal_conv1d` imports causal_conv1d_cuda, for example. Then nothing of the package can be imported.
std::optional<Offering> module_below(const Snapshot& snapshot, const std::string& package) {
  const auto& imports = snapshot.packages.value.imports;
  for (std::size_t i = 0; i < imports.size(); ++i) {
    const PackageImport& below = imports[i];
    if (below.package != package || below.offered != "module" || below.when != "import" || !below.reached ||
        !below.caught.empty())
      continue;
    Offering module = of_module(snapshot, below.target);
    if (module.offer != Offer::No && module.offer != Offer::Absent) continue;
    module.offer = Offer::No;
    module.evidence.push_back({import_pointer(i) + "/target", below.target});
    return module;
  }
  return std::nullopt;
}

// What the probe read in the target's sources.
Offering of_files(const PackageImport& import, std::size_t at) {
  Offering files{Offer::Unknown, import.why, "", {{import_pointer(at) + "/offered", import.offered}}};
  if (!import.why.empty()) files.evidence.push_back({import_pointer(at) + "/why", english(import.why)});
  if (import.offered == "yes") files.offer = Offer::Yes;
  if (import.offered == "no") files.offer = Offer::No;
  if (import.offered == "absent") files.offer = Offer::Absent;
  return files;
}

}  // namespace

// An observed import decides. A module that fails below the target explains the failure better than the
// target's files.
Offering offering(const Snapshot& snapshot, std::size_t at) {
  const PackageImport& import = snapshot.packages.value.imports[at];
  if (import.offered == "module") return of_module(snapshot, import.target);
  auto below = module_below(snapshot, import.target_package);
  if (auto seen = seen_offering(snapshot, import)) {
    if (below && seen->offer == Offer::No) seen->module = below->module;
    return *seen;
  }
  const Offering files = of_files(import, at);
  return below && files.offer != Offer::Absent && files.offer != Offer::No ? *below : files;
}

const Observation* seen_package(const Snapshot& snapshot, const std::string& package) {
  if (!snapshot.observations.present()) return nullptr;
  const auto& all = snapshot.observations.value;
  const auto found = std::ranges::find_if(
      all, [&](const Observation& seen) { return seen.variant == "package" && seen.module == package; });
  return found == all.end() ? nullptr : &*found;
}

std::string missing_package(const Observation& seen) {
  if (seen.outcome != "error") return {};
  std::string name = seen.missing;
  constexpr std::string_view kWords = "No module named '";
  if (name.empty() && seen.exception == "ModuleNotFoundError" && seen.message.english().starts_with(kWords))
    name = seen.message.english().substr(kWords.size(),
                                         seen.message.english().find('\'', kWords.size()) - kWords.size());
  // A dotted name such as "ruamel.yaml" is a part of a package that is there: it is another
  // release, not absent.
  return name.find('.') == std::string::npos ? name : "";
}

std::string import_statement(const PackageImport& import) {
  if (import.name.empty()) return join({"import", import.target}, " ");
  return join({"from", import.target, "import", import.name}, " ");
}

std::string import_place(const PackageImport& import) {
  return import.file + ":" + std::to_string(import.line);
}

std::string release(const std::string& name, const std::string& version) {
  return version.empty() ? name : name + " " + version;
}

Message which_copy(const Snapshot& snapshot, const std::string& package, const std::string& version) {
  const auto& all = snapshot.packages.value.found;
  const auto found = std::ranges::find(all, package, &PackageFound::name);
  const std::string named = release(package, version);
  return found != all.end() && found->current_folder
             ? message("{} (the copy in the current directory)", named)
             : Message(named);
}

// The module that the target's distribution brings, else one that is named after it, else the
// target itself.
std::string module_beside(const Snapshot& snapshot, const PackageImport& import) {
  for (const Extension& file : snapshot.extensions.value)
    if (!file.distribution.empty() &&
        normalized_name(file.distribution) == normalized_name(import.target_package))
      return file.module;
  const std::string usual = import.target_package + "_cuda";
  return std::ranges::find(snapshot.modules, usual) != snapshot.modules.end() ? usual : import.target_package;
}

}  // namespace scankit::checks

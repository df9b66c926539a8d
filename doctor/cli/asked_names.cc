// SPDX-License-Identifier: Apache-2.0
#include "doctor/cli/asked_names.h"

#include <algorithm>

#include "doctor/base/nearest.h"
#include "doctor/base/say.h"
#include "doctor/checks/view.h"
#include "doctor/knowledge/importers.h"
#include "doctor/probes/snapshot.h"

namespace scankit {
namespace {

// What one can mean: scankit's modules, the packages around them, and what is installed here.
std::vector<std::string> known_names(const Snapshot& snapshot) {
  std::vector<std::string> names = kDefaultModules;
  names.insert(names.end(), kRareModules.begin(), kRareModules.end());
  const auto& packages = known_importers().packages;
  names.insert(names.end(), packages.begin(), packages.end());
  for (const Distribution& installed : snapshot.distributions.value) names.push_back(installed.name);
  const auto& built = snapshot.sources.value.modules;
  names.insert(names.end(), built.begin(), built.end());
  return names;
}

bool is_here(const Snapshot& snapshot, const std::string& module) {
  const auto same = [&](const auto& each) { return each.module == module; };
  return std::ranges::any_of(snapshot.extensions.value, same) ||
         std::ranges::any_of(snapshot.importers.value, same) || asked_package(snapshot, module) != nullptr;
}

bool is_known(const std::vector<std::string>& names, const std::string& module) {
  const std::string top = package_key(module.substr(0, module.find('.')));
  return std::ranges::any_of(names, [&](const std::string& name) { return package_key(name) == top; });
}

// An import hook may bring what no file shows.
bool imports(const Snapshot& snapshot, const std::string& module) {
  const Observation* seen = deciding_import(snapshot, module);
  return seen != nullptr && (seen->outcome != "error" || seen->exception != "ModuleNotFoundError");
}

// A name that begins as a known one does ("selective_scan"), else one with a few letters changed.
std::string meant(const std::string& module, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (module.size() >= 4 && name.starts_with(module)) return name;
  return nearest_word(module, names);
}

}  // namespace

std::optional<Error> meaningless_module(const Snapshot& snapshot) {
  if (!snapshot.python.present() || snapshot.extensions.state == ProbeState::Failed ||
      snapshot.distributions.state == ProbeState::Failed)
    return std::nullopt;
  const std::vector<std::string> names = known_names(snapshot);
  for (const std::string& module : snapshot.modules_asked) {
    // VMamba's package is called selective_scan: known, but only where it is installed.
    const bool known = is_known(names, module) && std::ranges::find(known_importers().packages, module) ==
                                                      known_importers().packages.end();
    const bool model_package = module == "mamba_ssm" || module == "causal_conv1d";
    if (known || model_package || is_here(snapshot, module) || imports(snapshot, module)) continue;
    std::vector<std::string> others = names;
    std::erase(others, module);
    const std::string near = meant(module, others);
    return Error{Errc::InvalidArgument,
                 near.empty() ? say("no module {}: nothing of that name is installed for this Python", module)
                              : say("no module {}; did you mean {}?", module, near),
                 ""};
  }
  return std::nullopt;
}

}  // namespace scankit

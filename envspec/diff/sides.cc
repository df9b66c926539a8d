// SPDX-License-Identifier: Apache-2.0
#include "envspec/diff/sides.h"

#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/checks/view.h"
#include "doctor/model/why_missing.h"

namespace scankit {
namespace {

std::string sorted_list(std::vector<std::string> items) {
  std::ranges::sort(items);
  return join(items);
}

void put(Side& side, const std::string& name, const std::string& text) {
  if (!text.empty()) side.values[name] = {.text = text, .range = {}, .why_unknown = "", .extension = ""};
}

template <class T>
bool put_known(Side& side, const std::string& name, const Probed<T>& fact) {
  const bool unknown = fact.state == ProbeState::Failed || fact.state == ProbeState::NotRun;
  if (unknown) side.values[name].why_unknown = why_missing(fact);
  return fact.present();
}

void put(Side& side, const std::string& name, const Probed<std::string>& fact) {
  if (put_known(side, name, fact)) put(side, name, fact.value);
}

// What no range and no word is demanded of stays out: a spec leaves it open.
void put(Side& side, const std::string& name, const VersionRange& range) {
  if (!range.empty())
    side.values[name] = {.text = range.text(), .range = range, .why_unknown = "", .extension = ""};
}
void put_demanded(Side& side, const std::string& name, const std::vector<std::string>& items) {
  if (!items.empty())
    side.values[name] = {
        .text = sorted_list(items), .range = {}, .whole = false, .why_unknown = "", .extension = ""};
}

void mark(Side& side, const std::string& module, const std::string& path) {
  side.extensions.insert(module);
  for (auto& [name, value] : side.values)
    if (name.starts_with(path)) value.extension = module;
}

}  // namespace

Side side_of_spec(const Spec& spec) {
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
    put(side, path + "distribution", one.distribution.empty() ? "" : package_key(one.distribution));
    put(side, path + "version", one.version);
    put(side, path + "torch_abi", one.torch_abi);
    put(side, path + "string_abi", one.string_abi);
    put(side, path + "cuda", one.cuda);
    put(side, path + "python_tag", one.python_tag);
    put_demanded(side, path + "code", one.code);
    mark(side, one.module, path);
  }
  return side;
}

Side side_of_lock(const EnvironmentLock& lock) {
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

Side side_of_facts(const EnvironmentFacts& facts) {
  Side side;
  put(side, "driver", facts.driver);
  if (put_known(side, "gpus", facts.gpus)) put(side, "gpus", sorted_list(facts.gpus.value));
  put(side, "python.implementation", facts.implementation);
  put(side, "python.version", facts.python);
  put(side, "torch.version", facts.torch);
  put(side, "torch.cuda", facts.cuda);
  put(side, "torch.string_abi", facts.string_abi);
  for (const Distribution& one : facts.distributions.value)
    put(side, "packages." + package_key(one.name), one.version);
  for (const ExtensionFacts& one : facts.extensions.value) {
    const std::string path = "extensions." + one.module + ".";
    put(side, path + "distribution", one.distribution.empty() ? "" : package_key(one.distribution));
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

}  // namespace scankit

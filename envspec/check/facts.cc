// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>
#include <tuple>

#include "doctor/base/message.h"
#include "doctor/checks/snapshot_queries.h"
#include "envspec/check/check.h"

namespace scankit::envspec {
namespace {

// A part is present, absent or unknown exactly as the whole is, and for the same reason.
template <class Part, class Whole>
Probed<Part> part_of(const Probed<Whole>& whole, Part value) {
  return {whole.state, whole.note, whole.present() ? std::move(value) : Part()};
}

Probed<std::string> driver_of(const Snapshot& snapshot) {
  if (snapshot.driver.present() && snapshot.driver.value.version.empty())
    return Probed<std::string>::failed(message("the version of the driver is not known"));
  return part_of(snapshot.driver, snapshot.driver.value.version);
}

// One GPU of unknown architecture makes the whole fact unknown: a list without it could wrongly
// match a spec.
Probed<std::vector<std::string>> gpus_of(const Snapshot& snapshot) {
  using Answer = Probed<std::vector<std::string>>;
  if (!snapshot.gpus.present()) return part_of(snapshot.gpus, std::vector<std::string>());
  if (snapshot.gpus.value.empty()) return Answer::absent(message("no GPU found"));
  std::set<std::string> kinds;
  for (const Gpu& gpu : snapshot.gpus.value) {
    if (gpu.sm.empty()) return Answer::failed(message("the architecture of {} is not known", gpu.name));
    kinds.insert("sm_" + gpu.sm);
  }
  return Answer::of({kinds.begin(), kinds.end()});
}

Probed<std::string> cuda_of(const Probed<Torch>& torch) {
  if (torch.present() && torch.value.cuda.empty())
    return Probed<std::string>::absent(torch.value.hip.empty() ? message("this torch is a CPU build")
                                                               : message("this torch is built for ROCm"));
  return part_of(torch, torch.value.cuda);
}

// A torch whose string ABI is neither "old" nor "new" is one whose libraries could not be read.
Probed<std::string> string_abi_of(const Probed<Torch>& torch) {
  const std::string& abi = torch.value.string_abi;
  if (torch.present() && abi != "old" && abi != "new")
    return Probed<std::string>::failed(
        message("the string ABI of {} could not be read", torch.value.location));
  return part_of(torch, abi);
}

ExtensionFacts extension_of(const Snapshot& snapshot, std::size_t index) {
  const Extension& file = snapshot.extensions.value[index];
  ExtensionFacts facts;
  facts.module = file.module;
  facts.path = file.path;
  facts.pointer = "/extensions/value/" + std::to_string(index);
  facts.file_state = file.file_state;
  facts.distribution = file.distribution;
  for (const Distribution& one : snapshot.distributions.value)
    if (!file.distribution.empty() && one.name == file.distribution) facts.version = one.version;
  // "neutral" means that no symbol tells which string ABI the file uses; both will do.
  facts.torch_abi = !file.uses_torch ? "none" : file.built_for.stable_abi ? "stable" : "full";
  facts.torch_min = file.built_for.torch_min.value_or("");
  facts.torch_max = file.built_for.torch_max.value_or("");
  facts.string_abi = file.string_abi == "neutral" ? "" : file.string_abi;
  facts.cuda_major = file.cuda_major;
  facts.python_tag = file.tag;
  facts.glibc_min = file.glibc_min;
  facts.code = code_of(file.images);
  return facts;
}

Probed<std::vector<ExtensionFacts>> extensions_of(const Snapshot& snapshot) {
  std::vector<ExtensionFacts> all;
  for (std::size_t i = 0; i < snapshot.extensions.value.size(); ++i)
    if (snapshot.extensions.value[i].selected) all.push_back(extension_of(snapshot, i));
  std::ranges::stable_sort(all, {}, &ExtensionFacts::module);
  return part_of(snapshot.extensions, std::move(all));
}

}  // namespace

std::vector<std::string> code_of(const std::vector<DeviceImage>& images) {
  // Ordered by kind ("cubin" < "lto" < "ptx"), then by number.
  std::set<std::tuple<std::string, unsigned, std::string>> kinds;
  for (const DeviceImage& image : images) kinds.insert({image.kind, image.sm, image.specific});
  std::vector<std::string> names;
  for (const auto& [kind, sm, specific] : kinds)
    names.push_back((kind == "ptx"   ? "compute_"
                     : kind == "lto" ? "lto_"
                                     : "sm_") +
                    std::to_string(sm) + specific);
  return names;
}

std::string processor_of(const Snapshot& snapshot) {
  const std::string& kernel = snapshot.os.value.machine;
  return kernel.empty() ? interpreter_machine(snapshot) : kernel;
}

EnvironmentFacts facts_of(const Snapshot& snapshot) {
  EnvironmentFacts facts;
  facts.driver = driver_of(snapshot);
  facts.gpus = gpus_of(snapshot);
  facts.python = part_of(snapshot.python, snapshot.python.value.version);
  facts.implementation = part_of(snapshot.python, snapshot.python.value.implementation);
  facts.torch = part_of(snapshot.torch, snapshot.torch.value.version);
  facts.cuda = cuda_of(snapshot.torch);
  facts.string_abi = string_abi_of(snapshot.torch);
  facts.modules = snapshot.modules;
  facts.extensions = extensions_of(snapshot);
  facts.compilers = snapshot.compilers;
  facts.distributions = snapshot.distributions;
  return facts;
}

}  // namespace scankit::envspec

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>

#include "doctor/checks/check.h"
#include "doctor/checks/view.h"

namespace scankit {
namespace {

std::string no_device_code(const Snapshot& snapshot) {
  for (const Copy& copy : whole_copies(snapshot))
    if (!copy->images.empty()) return "";
  return "no module under diagnosis holds device code";
}

// Chips of the Tegra line: their cubins and those of desktop chips of the same major do not exchange (CUDA
// binary compatibility, "supported only for the desktop").
bool is_tegra(unsigned sm) { return sm == 53 || sm == 62 || sm == 72 || sm == 87 || sm == 101 || sm == 110; }

// A cubin runs within its major from its own minor up; PTX is compiled by the driver for anything newer; an
// "a" image runs on exactly the chip it names, an "f" image within its family.
bool runs_on(const DeviceImage& image, unsigned gpu) {
  const bool same_major = image.sm / 10 == gpu / 10;
  if (image.kind == "lto") return false;
  if (image.specific == "a") return image.sm == gpu;
  if (image.specific == "f") return same_major && image.sm <= gpu;
  if (image.kind == "ptx") return image.sm <= gpu;
  if (is_tegra(image.sm) || is_tegra(gpu)) return image.sm == gpu;
  return same_major && image.sm <= gpu;
}

std::string image_list(const Extension& extension) {
  std::vector<std::string> names;
  for (const DeviceImage& image : extension.images) {
    const std::string name =
        (image.kind == "ptx" ? "PTX " : "sm_") + std::to_string(image.sm) + image.specific;
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  std::ranges::sort(names);
  return join(names);
}

CheckResult run(const Snapshot& snapshot) {
  CheckResult result;
  const auto& gpus = snapshot.gpus.value;
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    const auto sm = static_cast<unsigned>(std::strtoul(gpus[g].sm.c_str(), nullptr, 10));
    if (sm == 0) {
      result.unknown.push_back("the compute capability of GPU " + std::to_string(gpus[g].index) + " (" +
                               (gpus[g].name.empty() ? gpus[g].pci_device : gpus[g].name) + ") is not known");
      continue;
    }
    for (const Copy& copy : whole_copies(snapshot)) {
      const auto fits = [&](const DeviceImage& image) { return runs_on(image, sm); };
      if (copy->images.empty() || std::ranges::any_of(copy->images, fits)) continue;
      result.findings.push_back(
          {.cause = Cause::NoKernelImage,
           .subject = copy->path,
           .module = copy->module,
           .summary = "it holds device code for " + image_list(*copy) + "; GPU " +
                      std::to_string(gpus[g].index) + " (" + gpus[g].name + ") is sm_" + gpus[g].sm,
           .evidence = {{"/gpus/value/" + std::to_string(g) + "/sm", gpus[g].sm},
                        copy.at("images", 0, "sm", std::to_string(copy->images.front().sm))},
           .fixes =
               module_fixes(snapshot, copy->module, "rebuild " + copy->module + " for sm_" + gpus[g].sm)});
    }
  }
  return result;
}

}  // namespace

extern const Check kGpuArchCovered{.id = "gpu-arch-covered",
                                   .question = "Does each module hold code for every GPU here?",
                                   .needs = kGpus | kExtensions | kImages,
                                   .settled_by_import = false,
                                   .not_applicable = no_device_code,
                                   .run = run};
}  // namespace scankit

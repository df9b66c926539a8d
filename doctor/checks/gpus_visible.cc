// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/checks/check.h"
#include "doctor/checks/gpu_view.h"

namespace scankit {
namespace {

std::string visible_gpus_not_applicable(const Snapshot& snapshot) {
  if (const std::string why = no_use_of_gpus(snapshot); !why.empty()) return why;
  return visible_devices(snapshot) ? "" : say("CUDA_VISIBLE_DEVICES is not set");
}

CheckResult gpus_visible(const Snapshot& snapshot) {
  CheckResult result;
  const auto set = visible_devices(snapshot);
  const auto gpus = seen_gpus(snapshot);
  const auto is = [](Visibility wanted) {
    return [wanted](const SeenGpu& gpu) { return gpu.visibility == wanted; };
  };
  if (!std::ranges::all_of(gpus, is(Visibility::Hidden))) {
    for (const SeenGpu& gpu : gpus)
      if (gpu.visibility == Visibility::Hidden)
        result.not_checked.push_back(say("{} is hidden by CUDA_VISIBLE_DEVICES={}", gpu.name(), set->text));
    const auto n = snapshot.driver.value.mig.size();
    for (const std::string& entry : set->accepted)
      if (entry.starts_with("MIG-") && n == 0)
        result.not_checked.push_back(say("whether the MIG instance {} exists: none is listed here", entry));
    if (n > 0)
      result.not_checked.push_back(say_n(n, "which of the {} MIG instance the variable means",
                                         "which of the {} MIG instances the variable means", n));
    return result;
  }
  // An empty value, "-1" and "NoDevFiles" are how one hides them on purpose; a number or id that names
  // nothing is a mistake.
  const bool on_purpose = set->text.empty() || set->text.starts_with('-') || set->text.starts_with("NoDev");
  const std::string value = set->text.empty() ? "\"\"" : set->text;
  const std::size_t n = gpus.size();
  if (!set->twice.empty()) {
    result.findings.push_back(
        {.cause = Cause::NoDriverLibcuda,
         .subject = "CUDA_VISIBLE_DEVICES",
         .module = "torch",
         .summary =
             say("CUDA_VISIBLE_DEVICES={} names {} twice, and CUDA then finds no device", value, set->twice),
         .evidence = {{"/environment/CUDA_VISIBLE_DEVICES", set->text}},
         .fixes = {SetEnvironment{"CUDA_VISIBLE_DEVICES", ""}}});
    return result;
  }
  Finding finding{
      .cause = Cause::NoDriverLibcuda,
      .subject = "CUDA_VISIBLE_DEVICES",
      .module = "torch",
      .summary =
          on_purpose
              ? say_n(n, "CUDA_VISIBLE_DEVICES={} hides the only GPU here, so CUDA finds no device",
                      "CUDA_VISIBLE_DEVICES={} hides all {} GPUs here, so CUDA finds no device", value, n)
              : say_n(n,
                      "CUDA_VISIBLE_DEVICES={} does not name the only GPU here, so CUDA finds no "
                      "device",
                      "CUDA_VISIBLE_DEVICES={} names none of the {} GPUs here, so CUDA finds no "
                      "device",
                      value, n),
      .evidence = {{"/environment/CUDA_VISIBLE_DEVICES", set->text}},
      .fixes = {SetEnvironment{"CUDA_VISIBLE_DEVICES", ""}}};
  if (on_purpose) finding.severity_override = Severity::Note;
  result.findings.push_back(finding);
  return result;
}

}  // namespace

extern const Check kGpusVisible{.id = "gpus-visible",
                                .question = "Does CUDA_VISIBLE_DEVICES leave a GPU to CUDA?",
                                .needs = kGpus,
                                .settled_by_import = false,
                                .not_applicable = visible_gpus_not_applicable,
                                .run = gpus_visible};
}  // namespace scankit

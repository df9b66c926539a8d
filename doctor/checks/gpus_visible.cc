// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/checks/check.h"
#include "doctor/checks/gpu_view.h"

namespace scankit {
namespace {

std::string not_applicable(const Snapshot& snapshot) {
  if (const std::string why = no_use_of_gpus(snapshot); !why.empty()) return why;
  return visible_devices(snapshot) ? "" : "CUDA_VISIBLE_DEVICES is not set";
}

CheckResult run(const Snapshot& snapshot) {
  CheckResult result;
  const auto set = visible_devices(snapshot);
  const auto gpus = seen_gpus(snapshot);
  const auto is = [](Visibility wanted) {
    return [wanted](const SeenGpu& gpu) { return gpu.visibility == wanted; };
  };
  if (!std::ranges::all_of(gpus, is(Visibility::Hidden))) {
    for (const SeenGpu& gpu : gpus)
      if (gpu.visibility == Visibility::Hidden)
        result.not_checked.push_back(gpu.name() + " is hidden by CUDA_VISIBLE_DEVICES=" + set->text);
    if (!snapshot.driver.value.mig.empty())
      result.not_checked.push_back("which of the " +
                                   count(snapshot.driver.value.mig.size(), "MIG instance", "MIG instances") +
                                   " the variable means");
    return result;
  }
  // An empty value, "-1" and "NoDevFiles" are how one hides them on purpose; a number or id that names
  // nothing is a mistake.
  const bool on_purpose = set->text.empty() || set->text.starts_with('-') || set->text.starts_with("NoDev");
  Finding finding{.cause = Cause::NoDriverLibcuda,
                  .subject = "CUDA_VISIBLE_DEVICES",
                  .module = "torch",
                  .summary = "CUDA_VISIBLE_DEVICES=" + (set->text.empty() ? "\"\"" : set->text) +
                             (on_purpose ? " hides all " : " names none of the ") +
                             count(gpus.size(), "GPU", "GPUs") + " here, so CUDA finds no device",
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
                                .not_applicable = not_applicable,
                                .run = run};
}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/checks/gpu_view.h"
#include "doctor/checks/view.h"
#include "envspec/check/check.h"
#include "envspec/check/outcome.h"

namespace scankit {
namespace {

Outcome check_gpus_here(const Spec& spec, const Snapshot& snapshot, const EnvironmentFacts& facts) {
  Outcome outcome = asked("spec-gpus", say("Is every GPU here one that the spec names?"));
  if (facts.gpus.state == ProbeState::Absent) {
    left_out(outcome, say("the GPUs of the spec: {}", why_missing(facts.gpus)));
    return outcome;
  }
  if (!facts.gpus.present()) {
    not_known(outcome, why_missing(facts.gpus));
    return outcome;
  }
  for (std::size_t i = 0; i < snapshot.gpus.value.size(); ++i) {
    const Gpu& gpu = snapshot.gpus.value[i];
    if (std::ranges::find(spec.gpus, "sm_" + gpu.sm) != spec.gpus.end()) continue;
    Finding finding;
    finding.cause = Cause::DriftGpu;
    finding.subject = say("GPU {} ({})", gpu.index, gpu.name);
    finding.summary =
        say("{} names {}, and this GPU is sm_{}", line_name(spec, "gpus"), join(spec.gpus), gpu.sm);
    finding.evidence = {{"/gpus/value/" + std::to_string(i) + "/sm", gpu.sm}};
    finding.fixes = {
        Advice{say("add sm_{} to gpus in {}, then see with scankit env check what lacks code for it", gpu.sm,
                   spec.file)}};
    finding.demanded_by = file_line(spec, "gpus");
    drifted(outcome, std::move(finding));
  }
  return outcome;
}

std::vector<std::string> not_served(const std::vector<std::string>& gpus,
                                    const std::vector<DeviceImage>& images) {
  std::vector<std::string> missing;
  for (const std::string& gpu : gpus) {
    const auto sm = static_cast<unsigned>(std::stoul(gpu.substr(3)));  // the parser took sm_ and digits
    if (std::ranges::none_of(images, [&](const DeviceImage& image) { return runs_on(image, sm); }))
      missing.push_back(gpu);
  }
  return missing;
}

// What holds device code at all is meant to compute on GPUs.
Outcome check_code(const Spec& spec, const Snapshot& snapshot) {
  Outcome outcome =
      asked("spec-gpu-code", say("Do torch and the extensions hold code for every GPU of the spec?"));
  if (!snapshot.torch.present() && snapshot.torch.state != ProbeState::Absent)
    not_known(outcome, say("torch: {}", why_missing(snapshot.torch)));
  bool any = false;
  for (const DeviceCode& code : device_code(snapshot)) {
    if (code.images->empty()) continue;
    any = true;
    const auto missing = not_served(spec.gpus, *code.images);
    if (missing.empty()) continue;
    Finding finding;
    finding.cause = Cause::DriftGpu;
    finding.subject = code.subject;
    finding.module = code.module;
    finding.summary = say("{} names {}, and the file holds code for: {}; nothing in it runs on {}",
                          line_name(spec, "gpus"), join(spec.gpus), image_list(*code.images), join(missing));
    finding.demanded_by = file_line(spec, "gpus");
    if (is_shipped_module(code.module))
      finding.fixes = {
          Advice{say("build it for them: scankit build --module {} --for {}", code.module, spec.file)}};
    else
      finding.fixes = {Advice{say("install a build for these GPUs, or take them out of {}", spec.file)}};
    drifted(outcome, std::move(finding));
  }
  if (!any && outcome.state == CheckState::Passed)
    left_out(outcome, say("the code for the GPUs of the spec: nothing here holds device code"));
  return outcome;
}

}  // namespace

std::vector<Outcome> check_gpus(const Spec& spec, const Snapshot& snapshot, const EnvironmentFacts& facts) {
  if (spec.gpus.empty()) return {};
  return {check_gpus_here(spec, snapshot, facts), check_code(spec, snapshot)};
}

}  // namespace scankit

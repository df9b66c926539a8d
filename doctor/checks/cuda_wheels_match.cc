// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/checks/check.h"
#include "doctor/checks/view.h"

namespace scankit {
namespace {

std::string cpu_build(const Snapshot& snapshot) {
  const Torch& torch = snapshot.torch.value;
  return torch.cuda.empty() && torch.nvidia_wheels.empty() ? say("this torch is a CPU build") : "";
}

bool by_variable(const Misfit& misfit) {
  return misfit.found_by.starts_with("LD_LIBRARY_PATH ") && !misfit.without_library_path.empty();
}

bool system_library(const Misfit& misfit) {
  return misfit.soname.starts_with("libstdc++") || misfit.soname.starts_with("libc.so") ||
         misfit.soname.starts_with("libm.so") || misfit.soname.starts_with("libgcc_s");
}

// A library of torch itself is torch's own release that was mixed.
bool of_torch(const Torch& torch, const Misfit& misfit) {
  return misfit.library.starts_with(torch.location + "/");
}

bool named_by(const std::vector<const Misfit*>& misfits, const CudaPin& pin) {
  return std::ranges::any_of(
      misfits, [&](const Misfit* m) { return m->wheel.substr(0, m->wheel.find("==")) == pin.name; });
}

// The pinned wheels of the misfits, also where the pin is met although the file is another's: two wheels may
// write one path. Where the files are of no wheel, every pin that is not met, else torch with all of them.
InstallPackages wheel_repair(const Torch& torch, const std::vector<const Misfit*>& misfits) {
  InstallPackages fix{{}, true};
  for (const CudaPin& pin : torch.cuda_pins)
    if (named_by(misfits, pin)) fix.requirements.push_back(pin.requirement);
  if (!fix.requirements.empty()) return fix;
  for (const CudaPin& pin : torch.cuda_pins)
    if (!pin.met) fix.requirements.push_back(pin.requirement);
  if (fix.requirements.empty())
    fix.requirements.push_back("torch==" + torch.version.substr(0, torch.version.find('+')));
  return fix;
}

std::string wheel_misfit_summary(const Torch& torch, const Misfit& misfit) {
  const std::string needed_by = path_basename(misfit.needed_by);
  const std::string what = misfit.name.empty() ? misfit.version : misfit.name;
  const auto pin = std::ranges::find_if(torch.cuda_pins, [&](const CudaPin& p) {
    return p.name == misfit.wheel.substr(0, misfit.wheel.find("=="));
  });
  if (misfit.wheel.empty())
    return say("{} needs {} of {}; the loader takes {}, which is of another release and does not have it",
               needed_by, what, misfit.soname, misfit.library);
  if (pin == torch.cuda_pins.end())
    return say(
        "{} needs {} of {}; the installed {} does not have it, and torch {} does not ask for that package",
        needed_by, what, misfit.soname, misfit.wheel, torch.version);
  return say("{} needs {} of {}; the installed {} does not have it, and torch {} asks for {}", needed_by,
             what, misfit.soname, misfit.wheel, torch.version, pin->requirement);
}

// A version that differs is no fault: only a name or version that is not there.
CheckResult cuda_wheels_match(const Snapshot& snapshot) {
  const Torch& torch = snapshot.torch.value;
  std::vector<const Misfit*> wrong;
  CheckResult result;
  Finding finding{.cause = Cause::CudaWheelsMismatch, .module = "torch"};
  for (std::size_t i = 0; i < torch.misfits.size(); ++i) {
    const Misfit& misfit = torch.misfits[i];
    if (by_variable(misfit) || system_library(misfit) || of_torch(torch, misfit)) continue;
    wrong.push_back(&misfit);
    const std::string at = "/torch/value/misfits/" + std::to_string(i);
    finding.evidence.push_back({at + "/library", misfit.library});
    finding.evidence.push_back(misfit.name.empty() ? Evidence{at + "/version", misfit.version}
                                                   : Evidence{at + "/name", misfit.name});
  }
  if (wrong.empty()) return result;
  for (std::size_t i = 0; i < torch.cuda_pins.size(); ++i)
    if (named_by(wrong, torch.cuda_pins[i]))
      finding.evidence.push_back(
          {"/torch/value/cuda_pins/" + std::to_string(i) + "/requirement", torch.cuda_pins[i].requirement});
  finding.subject = wrong.front()->library;
  finding.summary = wheel_misfit_summary(torch, *wrong.front());
  finding.fixes.push_back(wheel_repair(torch, wrong));
  result.findings.push_back(std::move(finding));
  return result;
}

}  // namespace

extern const Check kCudaWheelsMatch{
    .id = "cuda-wheels-match",
    .question = "Have the CUDA libraries what torch and each other need of them?",
    .needs = kTorch,
    .settled_by_import = true,
    .not_applicable = cpu_build,
    .run = cuda_wheels_match};
}  // namespace scankit

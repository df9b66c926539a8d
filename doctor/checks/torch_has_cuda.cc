// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/say.h"
#include "doctor/checks/check.h"
#include "doctor/checks/missing.h"
#include "doctor/checks/view.h"

namespace scankit {
namespace {

CheckResult run(const Snapshot& snapshot) {
  CheckResult result;
  if (!snapshot.torch.value.cuda.empty()) return result;
  for (const Copy& copy : resolved_copies(snapshot)) {
    Finding finding{.cause = Cause::CpuOnlyTorch, .subject = copy->path, .module = copy->module};
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < copy->missing_libraries.size(); ++i) {
      if (!is_torch_cuda_library(copy->missing_libraries[i].soname)) continue;
      parts.push_back(copy->missing_libraries[i].soname);
      finding.evidence.push_back(copy.at("missing_libraries", i, "soname", parts.back()));
    }
    if (parts.empty()) continue;
    finding.summary = say("it needs {}; torch {} is a CPU build", join(parts), snapshot.torch.value.version);
    finding.evidence.push_back({"/torch/value/cuda", ""});
    // The default index holds the CUDA builds; "+cpu" satisfies the same requirement, so the installer must
    // be told to do it again.
    const std::string& version = snapshot.torch.value.version;
    finding.fixes = {InstallPackages{{"torch==" + version.substr(0, version.find('+'))}, true}};
    if (const auto fixes = module_fixes(snapshot, copy->module, "");
        std::holds_alternative<InstallModule>(fixes[0]))
      finding.fixes.push_back(fixes[0]);  // its CPU path works with this torch
    result.findings.push_back(finding);
  }
  return result;
}

}  // namespace

extern const Check kTorchHasCuda{.id = "torch-has-cuda",
                                 .question = "Does torch have the CUDA parts that the modules need?",
                                 .needs = kTorch | kExtensions | kClosures,
                                 .settled_by_import = true,
                                 .not_applicable = no_module_installed,
                                 .run = run};
}  // namespace scankit

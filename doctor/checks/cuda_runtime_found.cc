// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/check.h"
#include "doctor/checks/missing.h"
#include "doctor/checks/view.h"

namespace scankit {
namespace {

std::string sentence(const Snapshot& snapshot, const MissingLibrary& library) {
  std::string text = "it needs " + library.soname + ", which the loader finds nowhere";
  const Torch& torch = snapshot.torch.value;
  if (!torch.cuda.empty()) text += "; torch " + torch.version + " uses CUDA " + torch.cuda;
  if (!library.same_library_other_version.empty())
    text += "; here is " + join(library.same_library_other_version);
  if (!library.found_elsewhere.empty())
    text += "; a file of that name lies where the loader does not look: " + library.found_elsewhere.front();
  return text;
}

// A toolkit of that major on LD_LIBRARY_PATH would hide this and fail on torch's own CUDA calls: not offered.
CheckResult run(const Snapshot& snapshot) {
  CheckResult result;
  for (const Copy& copy : resolved_copies(snapshot)) {
    Finding finding{.cause = Cause::MissingCudart, .subject = copy->path, .module = copy->module};
    for (std::size_t i = 0; i < copy->missing_libraries.size(); ++i) {
      const MissingLibrary& library = copy->missing_libraries[i];
      if (!is_cuda_library(library.soname) || torch_lost(snapshot, library.soname)) continue;
      finding.summary += (finding.summary.empty() ? "" : ". And ") + sentence(snapshot, library);
      finding.evidence.push_back(copy.at("missing_libraries", i, "soname", library.soname));
      finding.evidence.push_back(copy.at("missing_libraries", i, "needed_by", library.needed_by));
    }
    if (finding.evidence.empty()) continue;
    if (snapshot.torch.present())
      finding.evidence.push_back({"/torch/value/cuda", snapshot.torch.value.cuda});
    finding.fixes =
        rebuild_fixes(snapshot, copy, "use a build of " + copy->module + " for torch's CUDA major");
    result.findings.push_back(finding);
  }
  return result;
}

}  // namespace

extern const Check kCudaRuntimeFound{
    .id = "cuda-runtime-found",
    .question = "Does the loader find every CUDA library that the modules need?",
    .needs = kExtensions | kClosures,
    .settled_by_import = true,
    .not_applicable = no_module_installed,
    .run = run};
}  // namespace scankit

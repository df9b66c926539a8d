// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/say.h"
#include "doctor/checks/check.h"
#include "doctor/checks/missing.h"
#include "doctor/checks/view.h"

namespace scankit {
namespace {

std::string sentence(const Snapshot& snapshot, const MissingLibrary& library) {
  const Torch& torch = snapshot.torch.value;
  return clauses({say("it needs {}, which the loader finds nowhere", library.soname),
                  torch.cuda.empty() ? "" : say("torch {} uses CUDA {}", torch.version, torch.cuda),
                  library.same_library_other_version.empty()
                      ? ""
                      : say("here is {}", join(library.same_library_other_version)),
                  library.found_elsewhere.empty()
                      ? ""
                      : say("a file of that name lies where the loader does not look: {}",
                            library.found_elsewhere.front())});
}

// A toolkit of that major on LD_LIBRARY_PATH would hide this and fail on torch's own CUDA calls: not offered.
CheckResult cuda_runtime_found(const Snapshot& snapshot) {
  CheckResult result;
  for (const Copy& copy : resolved_copies(snapshot)) {
    Finding finding{.cause = Cause::MissingCudart, .subject = copy->path, .module = copy->module};
    for (std::size_t i = 0; i < copy->missing_libraries.size(); ++i) {
      const MissingLibrary& library = copy->missing_libraries[i];
      if (!is_cuda_library(library.soname) || torch_lost(snapshot, library.soname)) continue;
      const std::string text = sentence(snapshot, library);
      finding.summary = finding.summary.empty() ? text : say("{}. And {}", finding.summary, text);
      finding.evidence.push_back(copy.at("missing_libraries", i, "soname", library.soname));
      finding.evidence.push_back(copy.at("missing_libraries", i, "needed_by", library.needed_by));
    }
    if (finding.evidence.empty()) continue;
    if (snapshot.torch.present())
      finding.evidence.push_back({"/torch/value/cuda", snapshot.torch.value.cuda});
    finding.fixes =
        rebuild_fixes(snapshot, copy, say("use a build of {} for torch's CUDA major", copy->module));
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
    .run = cuda_runtime_found};
}  // namespace scankit

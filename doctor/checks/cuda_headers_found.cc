// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/say.h"
#include "doctor/checks/build_view.h"
#include "doctor/checks/check.h"

namespace scankit {
namespace {

std::string no_toolkit(const Snapshot& snapshot) {
  if (std::string why = needs_no_cuda(snapshot); !why.empty()) return why;
  return snapshot.build_tools.value.nvcc.empty() ? say("there is no nvcc") : "";
}

CheckResult cuda_headers_found(const Snapshot& snapshot) {
  const BuildTools& tools = snapshot.build_tools.value;
  CheckResult result;
  if (tools.headers.empty()) {
    result.not_checked = {
        say("which CUDA headers the sources include, since the build file does not name its files")};
    return result;
  }
  Finding finding = build_finding(snapshot, Cause::CudaHeadersMissing, "");
  std::vector<std::string> missing;
  for (std::size_t i = 0; i < tools.headers.size(); ++i) {
    if (!tools.headers[i].path.empty()) continue;
    missing.push_back(tools.headers[i].name);
    finding.evidence.push_back({"/build_tools/value/headers/" + std::to_string(i) + "/name", missing.back()});
  }
  if (missing.empty()) return result;
  finding.evidence.push_back({"/build_tools/value/cuda_home", tools.cuda_home});
  finding.summary =
      say("the toolkit {} has an nvcc but lacks headers that the sources include, themselves or by "
          "torch's headers: {}",
          tools.cuda_home, join(missing));
  const std::string& version = tools.nvcc_version.empty() ? snapshot.torch.value.cuda : tools.nvcc_version;
  finding.fixes = build_fixes(snapshot, toolkit_fix(snapshot, version, finding.evidence));
  result.findings.push_back(std::move(finding));
  return result;
}

}  // namespace

extern const Check kCudaHeadersFound{
    .id = "cuda-headers-found",
    .question = "Does the toolkit hold the CUDA headers that the sources include?",
    .needs = kSources,
    .not_applicable = no_toolkit,
    .run = cuda_headers_found,
    .asked = sources_are_here};
}  // namespace scankit

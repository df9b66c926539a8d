// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/say.h"
#include "doctor/checks/build_view.h"
#include "doctor/checks/check.h"

namespace scankit {
namespace {

// torch's CMake files compare nothing: what mixed majors do there is not known before the link.
std::string nobody_compares(const Snapshot& snapshot) {
  if (std::string why = needs_no_nvcc(snapshot); !why.empty()) return why;
  return builds_no_python_module(snapshot);
}

// torch.utils.cpp_extension refuses another major, and only warns of another minor.
CheckResult nvcc_matches_torch(const Snapshot& snapshot) {
  const BuildTools& tools = snapshot.build_tools.value;
  const std::string &nvcc = tools.nvcc_version, &cuda = snapshot.torch.value.cuda;
  CheckResult result;
  if (cuda.empty() || major_of(nvcc) == major_of(cuda)) return result;
  if (nvcc.empty()) {
    result.not_checked = {say("{} does not say its release", tools.nvcc)};
    return result;
  }
  Finding finding = build_finding(
      snapshot, Cause::CudaVersionMismatchBuild,
      say("torch {} is built with CUDA {} and its build refuses an nvcc of another major; {} is of CUDA {}",
          snapshot.torch.value.version, cuda, tools.nvcc, nvcc));
  finding.evidence = {{"/build_tools/value/nvcc_version", nvcc}, {"/torch/value/cuda", cuda}};
  finding.fixes = build_fixes(snapshot, toolkit_fix(snapshot, cuda, finding.evidence));
  result.findings.push_back(std::move(finding));
  return result;
}

}  // namespace

extern const Check kNvccMatchesTorch{.id = "nvcc-matches-torch",
                                     .question = "Is nvcc of the CUDA major that torch was built with?",
                                     .needs = kSources | kTorch,
                                     .not_applicable = nobody_compares,
                                     .run = nvcc_matches_torch,
                                     .asked = sources_are_here};
}  // namespace scankit

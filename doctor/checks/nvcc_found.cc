// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/say.h"
#include "doctor/checks/build_view.h"
#include "doctor/checks/check.h"

namespace scankit {
namespace {

// torch looks for no toolkit at all where it is a CPU build (cpp_extension: CUDA_HOME).
Finding cpu_torch(const Snapshot& snapshot) {
  const SourceTree& tree = snapshot.sources.value;
  Finding finding = build_finding(snapshot, Cause::CpuOnlyTorch,
                                  say("{} builds for CUDA, and torch {} is a CPU build, with which that "
                                      "build stops whatever toolkit is here",
                                      tree.build_file, snapshot.torch.value.version));
  finding.evidence = {{"/torch/value/cuda", ""}, {"/torch/value/version", snapshot.torch.value.version}};
  finding.fixes = {Advice{say("install a CUDA build of torch, then: {}", build_command(snapshot))}};
  return finding;
}

CheckResult nvcc_found(const Snapshot& snapshot) {
  const SourceTree& tree = snapshot.sources.value;
  const BuildTools& tools = snapshot.build_tools.value;
  CheckResult result;
  const bool setup = tree.build_file == "setup.py";
  if (setup && snapshot.torch.present() && snapshot.torch.value.cuda.empty()) {
    result.findings.push_back(cpu_torch(snapshot));
    return result;
  }
  // CUDAExtension joins paths to CUDA_HOME and raises where that is empty, kernels or not.
  const bool home_is_enough = setup && !tools.cuda_home.empty() && !tree.has_kernels;
  if (!tools.nvcc.empty() || home_is_enough) return result;
  Finding finding = build_finding(snapshot, Cause::NvccMissing, "");
  finding.evidence = {{"/build_tools/value/nvcc", ""}, {"/build_tools/value/cuda_home", tools.cuda_home}};
  if (!setup)
    finding.summary =
        say("{} enables the language CUDA, and there is no nvcc: CUDACXX names none, and PATH and "
            "/usr/local/cuda hold none",
            tree.build_file);
  else if (tools.cuda_home.empty())
    finding.summary =
        say("{} builds for CUDA, and there is no nvcc: CUDA_HOME and CUDA_PATH are not set, PATH holds "
            "none, and there is no /usr/local/cuda",
            tree.build_file);
  else
    finding.summary =
        say("{} builds for CUDA, and torch takes {} for the toolkit, by {}; that folder holds no bin/nvcc",
            tree.build_file, tools.cuda_home, tools.cuda_home_from);
  finding.fixes = build_fixes(snapshot, toolkit_fix(snapshot, snapshot.torch.value.cuda, finding.evidence));
  result.findings.push_back(std::move(finding));
  return result;
}

}  // namespace

extern const Check kNvccFound{.id = "nvcc-found",
                              .question = "Is there an nvcc for what the folder builds?",
                              .needs = kSources,
                              .not_applicable = needs_no_cuda,
                              .run = nvcc_found,
                              .asked = sources_are_here};
}  // namespace scankit

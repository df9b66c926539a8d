// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/say.h"
#include "doctor/base/version.h"
#include "doctor/checks/build_view.h"
#include "doctor/checks/check.h"

namespace scankit {
namespace {

// The first release whose nvcc compiles a standard (CUDA release notes: C++17 with 11.0, C++20 with 12.0).
std::string release_for(const std::string& standard) {
  if (standard == "17") return "11.0";
  return standard == "20" ? "12.0" : "";
}

CheckResult nvcc_new_enough(const Snapshot& snapshot) {
  const SourceTree& tree = snapshot.sources.value;
  const BuildTools& tools = snapshot.build_tools.value;
  const auto nvcc = Version::parse(tools.nvcc_version);
  CheckResult result;
  if (!nvcc) {
    result.not_checked = {say("{} does not say its release", tools.nvcc)};
    return result;
  }
  const auto raise = [&](const std::string& least, std::string summary, Evidence evidence) {
    Finding finding = build_finding(snapshot, Cause::OldCudaToolkit, std::move(summary));
    finding.evidence = {{"/build_tools/value/nvcc_version", tools.nvcc_version}, std::move(evidence)};
    const std::string& cuda = snapshot.torch.value.cuda;
    finding.fixes = build_fixes(snapshot, Advice{toolkit_advice(snapshot, cuda.empty() ? least : cuda)});
    result.findings.push_back(std::move(finding));
  };
  for (const std::size_t i : in_force(snapshot, tree.minimum_cuda)) {
    const SourceFact& demand = tree.minimum_cuda[i];
    const auto least = Version::parse(demand.value);
    if (!least || *nvcc >= *least) continue;
    raise(demand.value,
          say("{} refuses CUDA before {}; {} is of CUDA {}", place(demand), demand.value, tools.nvcc,
              tools.nvcc_version),
          source_evidence("minimum_cuda", i, demand.value));
    return result;
  }
  const std::string& standard = snapshot.torch.value.cxx_standard;
  const auto least = Version::parse(release_for(standard));
  if (least && *nvcc < *least)
    raise(release_for(standard),
          say("the headers of torch {} are C++{}, which nvcc compiles from CUDA {} on; {} is of CUDA {}",
              snapshot.torch.value.version, standard, release_for(standard), tools.nvcc, tools.nvcc_version),
          {"/torch/value/cxx_standard", standard});
  return result;
}

}  // namespace

extern const Check kNvccNewEnough{
    .id = "nvcc-new-enough",
    .question = "Is nvcc new enough for the sources and for the headers of torch?",
    .needs = kSources,
    .not_applicable = needs_no_nvcc,
    .run = nvcc_new_enough,
    .asked = sources_are_here};
}  // namespace scankit

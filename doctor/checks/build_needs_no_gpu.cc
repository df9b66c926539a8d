// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/say.h"
#include "doctor/checks/build_view.h"
#include "doctor/checks/check.h"
#include "doctor/checks/repairs.h"

namespace scankit {
namespace {

std::string nothing_to_ask(const Snapshot& snapshot) {
  if (snapshot.gpus.present()) return say("there is a GPU to ask");
  return builds_no_python_module(snapshot);
}

CheckResult asks_itself(const Snapshot& snapshot, const SourceFact& fact, std::size_t i) {
  Finding finding =
      build_finding(snapshot, Cause::NoGpuAtBuild,
                    say("{} calls {}, which raises where there is no GPU, as here", place(fact), fact.value));
  finding.evidence = {source_evidence("asks_gpu", i, fact.value)};
  finding.fixes = build_fixes(
      snapshot,
      Advice{say("build where the GPU is, or write its capability at {} in place of the call, then: {}",
                 place(fact), build_command(snapshot))});
  return {{std::move(finding)}};
}

// torch lists the architectures of the GPUs present and takes the last one: an IndexError where there is
// none.
bool torch_asks(const Snapshot& snapshot) {
  const SourceTree& tree = snapshot.sources.value;
  const BuildTools& tools = snapshot.build_tools.value;
  return tools.arch_list_needs_gpu && needs_no_nvcc(snapshot).empty() && !tree.passes_archs &&
         !tree.sets_arch_list && (tools.arch_list.empty() || tools.arch_list == "native") &&
         !snapshot.torch.value.cuda.empty();
}

CheckResult build_needs_no_gpu(const Snapshot& snapshot) {
  const SourceTree& tree = snapshot.sources.value;
  const BuildTools& tools = snapshot.build_tools.value;
  if (snapshot.gpus.state != ProbeState::Absent)
    return {{}, {}, {say("whether there is a GPU for the build to ask: {}", snapshot.gpus.note)}};
  for (const std::size_t i : in_force(snapshot, tree.asks_gpu))
    return asks_itself(snapshot, tree.asks_gpu[i], i);
  if (!torch_asks(snapshot)) return {};
  if (tree.own_helpers)
    return {
        {},
        {},
        {say("whether a module that {} imports from its folder names the architectures", tree.build_file)}};
  Finding finding = build_finding(snapshot, Cause::NoGpuAtBuild,
                                  say("neither {} nor TORCH_CUDA_ARCH_LIST names an architecture, so that "
                                      "torch asks the GPUs, and there is none",
                                      tree.build_file));
  finding.evidence = {{"/build_tools/value/arch_list", tools.arch_list},
                      {"/build_tools/value/arch_list_needs_gpu", "true"}};
  finding.fixes = build_fixes(
      snapshot, shell_advice(say("name the capability of the GPU that will run it, 9.0 for an H100: {}",
                                 build_command(snapshot, "TORCH_CUDA_ARCH_LIST=9.0")),
                             "export TORCH_CUDA_ARCH_LIST=9.0"));
  return {{std::move(finding)}};
}

}  // namespace

extern const Check kBuildNeedsNoGpu{.id = "build-needs-no-gpu",
                                    .question = "Can the build do without a GPU, where there is none?",
                                    .needs = kSources,
                                    .not_applicable = nothing_to_ask,
                                    .run = build_needs_no_gpu,
                                    .asked = sources_are_here};
}  // namespace scankit

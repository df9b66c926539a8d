// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/say.h"
#include "doctor/checks/build_view.h"
#include "doctor/checks/check.h"

namespace scankit {
namespace {

CheckResult torch_api_present(const Snapshot& snapshot) {
  const SourceTree& tree = snapshot.sources.value;
  const BuildTools& tools = snapshot.build_tools.value;
  CheckResult result;
  if (!tools.torch_has_headers) {
    result.not_checked = {say("the sources against torch's headers: the installed torch has none")};
    return result;
  }
  if (tree.sources.empty())
    result.not_checked = {say("which files are compiled: the build file does not name them")};
  Finding finding = build_finding(snapshot, Cause::TorchApiRemovedInSource, "");
  std::vector<std::string> parts;
  const auto add = [&](const char* list, std::size_t i, const SourceFact& fact, std::string sentence) {
    if (parts.size() < 3) parts.push_back(std::move(sentence));
    finding.evidence.push_back(source_evidence(list, i, fact.value));
  };
  for (std::size_t i = 0; i < tree.lost_headers.size(); ++i)
    add("lost_headers", i, tree.lost_headers[i],
        say("there is no <{}>, which {} includes", tree.lost_headers[i].value, place(tree.lost_headers[i])));
  for (std::size_t i = 0; i < tree.type_dispatch.size() && !tools.dispatch_takes_type; ++i)
    add("type_dispatch", i, tree.type_dispatch[i],
        say("{} no longer takes .type(), as {} writes", tree.type_dispatch[i].value,
            place(tree.type_dispatch[i])));
  if (parts.empty()) return result;
  const std::size_t more = finding.evidence.size() - parts.size();
  finding.summary = more == 0 ? say("in torch {}: {}", snapshot.torch.value.version, join(parts, "; "))
                              : say("in torch {}: {}; and {} more places", snapshot.torch.value.version,
                                    join(parts, "; "), more);
  finding.fixes = build_fixes(
      snapshot,
      Advice{say("take a release of these sources that knows this torch; by hand: .scalar_type() for .type() "
                 "in AT_DISPATCH, <ATen/cuda/CUDAContext.h> for <THC/THC.h>")});
  result.findings.push_back(std::move(finding));
  return result;
}

}  // namespace

extern const Check kTorchApiPresent{.id = "torch-api-present",
                                    .question = "Does this torch have the interfaces that the sources use?",
                                    .needs = kSources | kTorch,
                                    .not_applicable = nullptr,
                                    .run = torch_api_present,
                                    .asked = sources_are_here};
}  // namespace scankit

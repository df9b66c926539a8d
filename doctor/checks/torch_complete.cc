// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/check.h"
#include "doctor/checks/view.h"

namespace scankit {
namespace {

// torch dlopens nothing lazily here: the probe lists what the loader must find to load torch's own libraries.
CheckResult run(const Snapshot& snapshot) {
  const Torch& torch = snapshot.torch.value;
  if (torch.missing_libraries.empty()) return {};
  Finding finding{.cause = Cause::TorchIncomplete,
                  .subject = torch.location,
                  .module = "torch",
                  .summary = "torch " + torch.version + " cannot load: " + join(torch.missing_libraries) +
                             ", and the loader finds " +
                             (torch.missing_libraries.size() == 1 ? "no such file" : "none of them")};
  for (std::size_t i = 0; i < torch.missing_libraries.size(); ++i)
    finding.evidence.push_back(
        {"/torch/value/missing_libraries/" + std::to_string(i), torch.missing_libraries[i]});
  // A local version ("+cu130") is no part of the requirement: PEP 440 lets 2.11.0 match 2.11.0+cu130.
  finding.fixes.push_back(
      InstallPackages{{"torch==" + torch.version.substr(0, torch.version.find('+'))}, true});
  return {{finding}, {}};
}

}  // namespace

extern const Check kTorchComplete{.id = "torch-complete",
                                  .question = "Are all libraries there that torch itself loads?",
                                  .needs = kTorch,
                                  .settled_by_import = true,
                                  .not_applicable = nullptr,
                                  .run = run};
}  // namespace scankit

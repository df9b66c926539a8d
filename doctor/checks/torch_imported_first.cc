// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/say.h"
#include "doctor/checks/check.h"
#include "doctor/checks/view.h"

namespace scankit {
namespace {

bool lacks_more(const Extension& file) {
  return !file.missing_symbols.empty() || !file.missing_libraries.empty() || !file.unmet_versions.empty();
}

// Healthy: torch's extensions carry no path to torch's libraries and rely on their being loaded. Worth a
// note, since a sorter of imports that moves the line above `import torch` breaks the program.
CheckResult run(const Snapshot& snapshot) {
  CheckResult result;
  for (const Copy& copy : resolved_copies(snapshot)) {
    // One that does not load after torch either has another fault, and the order is no repair.
    if (copy->needs_torch_first.empty() || lacks_more(*copy.extension)) continue;
    Finding finding{.cause = Cause::TorchNotImportedFirst,
                    .subject = copy->path,
                    .module = copy->module,
                    .summary = say("{} loads only after `import torch`, which brings {}", copy->module,
                                   join(copy->needs_torch_first)),
                    .fixes = {ImportTorchFirst{copy->module}}};
    for (std::size_t i = 0; i < copy->needs_torch_first.size(); ++i)
      finding.evidence.push_back(copy.at("needs_torch_first", i, "", copy->needs_torch_first[i]));
    result.findings.push_back(finding);
  }
  return result;
}

}  // namespace

extern const Check kTorchImportedFirst{.id = "torch-imported-first",
                                       .question = "Does each module load without `import torch` before it?",
                                       .needs = kTorch | kExtensions | kClosures,
                                       .settled_by_import = false,
                                       .not_applicable = no_module_installed,
                                       .run = run};
}  // namespace scankit

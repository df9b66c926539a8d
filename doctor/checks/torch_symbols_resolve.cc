// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/say.h"
#include "doctor/checks/check.h"
#include "doctor/checks/missing.h"
#include "doctor/checks/view.h"

namespace scankit {
namespace {

std::string symbol_in_words(const MissingSymbol& symbol) {
  if (symbol.near.empty()) return readable(symbol);
  return say("{} (torch has {})", readable(symbol), symbol.near.front());
}

// The installed torch's export tables decide, never its version: a module built for another release may well
// fit.
CheckResult torch_symbols_resolve(const Snapshot& snapshot) {
  CheckResult result;
  const Torch& torch = snapshot.torch.value;
  if (torch.libraries.empty()) {
    result.not_checked.push_back(say("{} holds no libraries whose names could be compared", torch.location));
    return result;
  }
  for (const Copy& copy : resolved_copies(snapshot)) {
    const auto drifted = torch_names(copy).drifted;
    const auto foreign = foreign_torch_libraries(snapshot, copy);
    if (drifted.empty() && foreign.empty()) continue;
    Finding finding{.cause = Cause::TorchVersionMismatch, .subject = copy->path, .module = copy->module};
    for (const std::size_t i : drifted)
      finding.evidence.push_back(copy.at("missing_symbols", i, "name", copy->missing_symbols[i].name));
    if (const std::size_t n = drifted.size(); n > 0)
      finding.summary = say_n(n, "it needs {} name that torch {} does not export in any form: {}",
                              "it needs {} names that torch {} does not export in any form, such as {}", n,
                              torch.version, symbol_in_words(copy->missing_symbols[drifted.front()]));
    for (const std::size_t i : foreign) {
      const std::string& soname = copy->missing_libraries[i].soname;
      finding.summary = finding.summary.empty()
                            ? say("it needs {}, a library of other torch releases", soname)
                            : say("{}; and {}, a library of other torch releases", finding.summary, soname);
      finding.evidence.push_back(
          copy.at("missing_libraries", i, "soname", copy->missing_libraries[i].soname));
    }
    if (const std::string made_for = torch_words(copy->dating); !made_for.empty())
      finding.summary = say("{}; it was built for {}", finding.summary, made_for);
    add_dating(copy, finding);
    finding.evidence.push_back({"/torch/value/version", torch.version});
    finding.fixes =
        rebuild_fixes(snapshot, copy, say("rebuild {} against torch {}", copy->module, torch.version));
    result.findings.push_back(finding);
  }
  return result;
}

}  // namespace

extern const Check kTorchSymbolsResolve{
    .id = "torch-symbols-resolve",
    .question = "Does the installed torch export every torch name that each module needs?",
    .needs = kTorch | kExtensions | kClosures,
    .settled_by_import = true,
    .not_applicable = no_module_installed,
    .run = torch_symbols_resolve};
}  // namespace scankit

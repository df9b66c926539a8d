// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/checks/check.h"
#include "doctor/checks/missing.h"
#include "doctor/checks/view.h"

namespace scankit {
namespace {

// Either an older torch's file, or a flag that somebody wrote into a set-up script: the names alone cannot
// tell.
void add_made_for(const Dating& dating, bool is_new, const std::string& installed, Finding& finding) {
  const std::string made_for = torch_words(dating);
  if (made_for.empty()) return;
  if (!is_new && std::ranges::find(dating.releases, torch_minor(installed)) != dating.releases.end()) {
    finding.summary =
        say("{}; its names fit {}: it was built with -D_GLIBCXX_USE_CXX11_ABI=0, or for an older torch "
            "that has the old strings",
            finding.summary, made_for);
    return;
  }
  finding.summary =
      is_new ? say("{}; it was built for {}, or without the torch's own -D_GLIBCXX_USE_CXX11_ABI=0",
                   finding.summary, made_for)
             : say("{}; it was built for {}, or with -D_GLIBCXX_USE_CXX11_ABI=0 for a torch that is not",
                   finding.summary, made_for);
}

std::string string_abi_in_words(bool is_new, std::size_t n, const std::string& torch,
                                const std::string& name) {
  if (is_new)
    return say_n(
        n, "it calls {} function of torch by the new C++ string ABI, and torch {} has it by the old one: {}",
        "it calls {} functions of torch by the new C++ string ABI, and torch {} has them by the old one, "
        "such as {}",
        n, torch, name);
  return say_n(
      n, "it calls {} function of torch by the old C++ string ABI, and torch {} has it by the new one: {}",
      "it calls {} functions of torch by the old C++ string ABI, and torch {} has them by the new one, "
      "such as {}",
      n, torch, name);
}

// Proven name by name: torch exports the same function with the other spelling of std::string.
CheckResult string_abi_matches(const Snapshot& snapshot) {
  CheckResult result;
  const Torch& torch = snapshot.torch.value;
  for (const Copy& copy : resolved_copies(snapshot)) {
    const auto flipped = torch_names(copy).flipped;
    if (flipped.empty()) continue;
    const MissingSymbol& first = copy->missing_symbols[flipped.front()];
    // The spelling of the names themselves: one file may mix objects of both kinds.
    const bool is_new = first.name.find("__cxx11") != std::string::npos;
    Finding finding{.cause = Cause::AbiCxx11Mismatch,
                    .subject = copy->path,
                    .module = copy->module,
                    .summary = string_abi_in_words(is_new, flipped.size(), torch.version, readable(first))};
    for (const std::size_t i : flipped)
      finding.evidence.push_back(copy.at("missing_symbols", i, "name", copy->missing_symbols[i].name));
    add_made_for(copy->dating, is_new, torch.version, finding);
    add_dating(copy, finding);
    finding.evidence.push_back({"/torch/value/string_abi", torch.string_abi});
    finding.fixes =
        rebuild_fixes(snapshot, copy, say("rebuild {} with torch's own string ABI", copy->module));
    result.findings.push_back(finding);
  }
  return result;
}

}  // namespace

extern const Check kStringAbiMatches{.id = "string-abi-matches",
                                     .question = "Do the modules and torch agree on the C++ string ABI?",
                                     .needs = kTorch | kExtensions | kClosures,
                                     .settled_by_import = true,
                                     .not_applicable = no_module_installed,
                                     .run = string_abi_matches};
}  // namespace scankit

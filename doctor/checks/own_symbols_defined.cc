// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/checks/check.h"
#include "doctor/checks/missing.h"
#include "doctor/checks/view.h"

namespace scankit {
namespace {

bool names_may_be_a_missing_library_s(const Copy& copy) {
  for (const MissingLibrary& library : copy->missing_libraries)
    if (!is_torch_library(library.soname) && !is_cuda_library(library.soname)) return true;
  return false;
}

// A qualifier outside torch's namespaces, whatever the argument types: no torch release ever had that name.
Finding undefined(const Copy& copy, const std::vector<Evidence>& names, const std::string& demangled) {
  const std::size_t n = names.size();
  return {
      .cause = Cause::OwnSymbolUndefined,
      .subject = copy->path,
      .module = copy->module,
      .summary = say_n(n, "it calls {} function of its own that it does not contain: {}",
                       "it calls {} functions of its own that it does not contain: {} first", n, demangled),
      .evidence = names};
}

Finding never_linked(const Copy& copy, const std::vector<std::size_t>& names) {
  const MissingSymbol& first = copy->missing_symbols[names.front()];
  const std::size_t n = names.size();
  Finding finding{.cause = Cause::OwnSymbolUndefined,
                  .subject = copy->path,
                  .module = copy->module,
                  .summary = say_n(n, "it was not linked with {}, which has {} name that it needs: {}",
                                   "it was not linked with {}, which has {} names that it needs: {}",
                                   path_basename(first.exported_by_torch), n, first.name)};
  for (const std::size_t i : names)
    finding.evidence.push_back(copy.at("missing_symbols", i, "name", copy->missing_symbols[i].name));
  return finding;
}

CheckResult own_symbols_defined(const Snapshot& snapshot) {
  CheckResult result;
  for (const Copy& copy : resolved_copies(snapshot)) {
    const bool undecided = (copy->uses_torch && snapshot.torch.value.libraries.empty()) ||
                           names_may_be_a_missing_library_s(copy);
    const auto own = [&](const MissingSymbol& s) {
      // Bound to a version node, a name is that library's in which the linker found it.
      if (!s.version.empty()) return false;
      return s.owner == "own" || (s.owner == "unknown" && !undecided);
    };
    std::vector<Finding> found;
    const auto names = symbol_evidence(copy, own);
    const auto first = std::ranges::find_if(copy->missing_symbols, own);
    if (!names.empty()) found.push_back(undefined(copy, names, readable(*first)));
    if (const auto torch = torch_names(copy).not_linked; !torch.empty())
      found.push_back(never_linked(copy, torch));
    for (Finding& finding : found) {
      finding.fixes = rebuild_fixes(
          snapshot, copy, say("build {} again from a clean folder with all its sources", copy->module));
      result.findings.push_back(std::move(finding));
    }
  }
  return result;
}

}  // namespace

extern const Check kOwnSymbolsDefined{
    .id = "own-symbols-defined",
    .question = "Does each module contain the functions of its own that it calls?",
    .needs = kExtensions | kClosures,
    .settled_by_import = true,
    .not_applicable = no_module_installed,
    .run = own_symbols_defined};
}  // namespace scankit

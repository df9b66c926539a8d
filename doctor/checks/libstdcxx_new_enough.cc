// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/check.h"
#include "doctor/checks/view.h"

namespace scankit {
namespace {

std::string no_module(const Snapshot& snapshot) {
  return selected_copies(snapshot).empty() ? "no module under diagnosis is installed" : "";
}

// Which libstdc++ the process loads is the resolver's answer: conda's, the system's or one from
// LD_LIBRARY_PATH.
CheckResult run(const Snapshot& snapshot) {
  CheckResult result;
  for (const Copy& copy : resolved_copies(snapshot)) {
    Finding finding{.cause = Cause::LibstdcxxTooOld, .subject = copy->path, .module = copy->module};
    const auto& unmet = copy->unmet_versions;
    for (std::size_t i = 0; i < unmet.size(); ++i) {
      const std::string& version = unmet[i].version;
      if (!(version.starts_with("GLIBCXX_") || version.starts_with("CXXABI_"))) continue;
      finding.summary += (finding.summary.empty() ? "" : "; ") + path_basename(unmet[i].needed_by) +
                         " needs " + version + ", " + unmet[i].library + " ends at " + unmet[i].provided_max;
      if (!unmet[i].symbols.empty()) finding.summary += " (for " + join(unmet[i].symbols) + ")";
      finding.evidence.push_back(copy.at("unmet_versions", i, "version", version));
      finding.evidence.push_back(copy.at("unmet_versions", i, "provided_max", unmet[i].provided_max));
    }
    if (finding.evidence.empty()) continue;
    finding.fixes = module_fixes(
        snapshot, copy->module,
        "install a newer libstdc++ where this Python finds it, or rebuild with the older compiler");
    result.findings.push_back(finding);
  }
  return result;
}

}  // namespace

extern const Check kLibstdcxxNewEnough{
    .id = "libstdcxx-new-enough",
    .question = "Is the libstdc++ that the process loads as new as each module needs?",
    .needs = kExtensions | kClosures,
    .settled_by_import = true,
    .not_applicable = no_module,
    .run = run};
}  // namespace scankit

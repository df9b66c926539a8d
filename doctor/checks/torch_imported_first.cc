// SPDX-License-Identifier: Apache-2.0
// torch's extensions carry no path to torch's libraries and rely on their being loaded: healthy, and not a
// word, as long as everybody imports torch first. Who does it the other way round fails.
#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/checks/check.h"
#include "doctor/checks/packages.h"
#include "doctor/checks/view.h"

namespace scankit {
namespace {

bool lacks_more(const Extension& file) {
  return !file.missing_symbols.empty() || !file.missing_libraries.empty() || !file.unmet_versions.empty();
}

const Observation* alone(const Snapshot& snapshot, const std::string& module) {
  const auto& all = snapshot.observations.value;
  const auto found = std::ranges::find_if(
      all, [&](const Observation& seen) { return seen.module == module && seen.variant == "bare"; });
  return found == all.end() ? nullptr : &*found;
}

// One that does not load after torch either has another fault, and the order is no repair.
bool loads_only_after_torch(const Snapshot& snapshot, const Extension& file) {
  if (file.needs_torch_first.empty() || lacks_more(file)) return false;
  const Observation *bare = alone(snapshot, file.module), *after = deciding_import(snapshot, file.module);
  if (bare != nullptr && bare->outcome == "ok") return false;
  return after == nullptr || after == bare || after->outcome == "ok";
}

// The loader's words about one of the libraries that torch would have brought.
bool fails_for_want_of_torch(const Observation& seen, const Extension& file) {
  return seen.outcome == "error" &&
         std::ranges::any_of(file.needs_torch_first, [&](const std::string& soname) {
           return seen.message.find(soname + ": ") != std::string::npos;
         });
}

Finding import_order_finding(const Copy& copy, std::string summary) {
  Finding finding{.cause = Cause::TorchNotImportedFirst,
                  .subject = copy->path,
                  .module = copy->module,
                  .summary = std::move(summary),
                  .evidence = {},
                  .fixes = {ImportTorchFirst{copy->module}},
                  .severity_override = Severity::Error};
  for (std::size_t i = 0; i < copy->needs_torch_first.size(); ++i)
    finding.evidence.push_back(copy.at("needs_torch_first", i, "", copy->needs_torch_first[i]));
  return finding;
}

// Seen: `import PACKAGE` in a fresh interpreter comes to the module before torch.
void seen_to_fail(const Snapshot& snapshot, const Copy& copy, std::vector<Finding>& findings) {
  for (const PackageFound& package : snapshot.packages.value.found) {
    const Observation* seen = seen_package(snapshot, package.name);
    if (seen == nullptr || !fails_for_want_of_torch(*seen, *copy)) continue;
    Finding finding = import_order_finding(
        copy, say("`import {}` fails: it comes to {} before anything has imported torch, which brings {}",
                  package.name, copy->module, join(copy->needs_torch_first)));
    const auto at = static_cast<std::size_t>(seen - snapshot.observations.value.data());
    finding.evidence.push_back({"/observations/value/" + std::to_string(at) + "/message", seen->message});
    findings.push_back(std::move(finding));
  }
}

// Read: a file imports it, and nothing before that line could have brought torch.
void read_to_fail(const Snapshot& snapshot, const Copy& copy, std::vector<Finding>& findings) {
  for (const std::size_t i : needing_importers(snapshot, copy->module)) {
    const Importer& importer = snapshot.importers.value[i];
    if (!importer.before_torch || importer.in_function) continue;
    const Observation* package = seen_package(snapshot, importer.package);
    if (package != nullptr) continue;  // what was seen says more
    Finding finding = import_order_finding(
        copy, say("{}:{} imports {} before anything has imported torch, which brings {}", importer.file,
                  importer.line, copy->module, join(copy->needs_torch_first)));
    finding.evidence.push_back({"/importers/value/" + std::to_string(i) + "/file", importer.file});
    if (is_only_nearby(snapshot, importer)) finding.severity_override = Severity::Note;
    findings.push_back(std::move(finding));
  }
}

CheckResult torch_imported_first(const Snapshot& snapshot) {
  CheckResult result;
  for (const Copy& copy : resolved_copies(snapshot)) {
    if (!loads_only_after_torch(snapshot, *copy)) continue;
    seen_to_fail(snapshot, copy, result.findings);
    read_to_fail(snapshot, copy, result.findings);
  }
  return result;
}

}  // namespace

extern const Check kTorchImportedFirst{
    .id = "torch-imported-first",
    .question = "Does everybody import torch before the modules that need it?",
    .needs = kTorch | kExtensions | kClosures,
    .settled_by_import = false,
    .not_applicable = no_module_installed,
    .run = torch_imported_first};
}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/message.h"
#include "doctor/checks/check.h"
#include "doctor/checks/repairs.h"
#include "doctor/checks/snapshot_queries.h"
#include "doctor/model/snapshot_variables.h"

namespace scankit::checks {
namespace {

// A module under diagnosis has checks of its own, which say more than the audit.
bool under_diagnosis(const Snapshot& snapshot, const AuditedFile& file) {
  return std::ranges::any_of(snapshot.extensions.value,
                             [&](const Extension& copy) { return copy.path == file.path; });
}

std::string module_of_file(const AuditedFile& file) {
  const std::string name = path_basename(file.path);
  return name.substr(0, name.find('.'));
}

Message not_asked(const Snapshot& snapshot) {
  return snapshot.audit.state == ProbeState::NotRun ? message("auditing all packages was not requested") : "";
}

Message other_extensions() { return message("other compiled packages: add --all to check them"); }

// The hint at --all, if the user could have given it: not for a stored snapshot or named files.
Message audit_left_out(const Snapshot& snapshot) {
  const bool elsewhere = !snapshot.read_from.empty() || !snapshot.named_files.empty();
  return elsewhere || !snapshot.python.present() ? "" : other_extensions();
}

const Distribution* distribution_of(const Snapshot& snapshot, const AuditedFile& file) {
  if (file.distribution.empty()) return nullptr;
  const auto& all = snapshot.distributions.value;
  const auto found = std::ranges::find(all, file.distribution, &Distribution::name);
  return found == all.end() ? nullptr : &*found;
}

// The same release brings a damaged file back. Which other release of a package would fit is known
// only to its maker.
Fix repair_of_file(const Snapshot& snapshot, const AuditedFile& file, Cause cause) {
  const Distribution* owner = distribution_of(snapshot, file);
  const std::string name = owner == nullptr ? module_of_file(file) : owner->name;
  const bool damaged = cause == Cause::CorruptBinary || cause == Cause::WrongMachineArch;
  if (damaged && owner != nullptr && !owner->version.empty())
    return InstallPackages{{name + "==" + owner->version}, true};
  if (cause == Cause::TorchVersionMismatch || cause == Cause::AbiCxx11Mismatch)
    return Advice{
        message("install a release of {} that was built for torch {}, or build it here from its sources",
                name, snapshot.torch.value.version)};
  if (cause == Cause::PythonAbiTagMismatch)
    return Advice{
        message("install a release of {} that was built for Python {}", name, snapshot.python.value.version)};
  return Advice{message("install a build of {} that matches this environment", name)};
}

Finding audit_finding(const Snapshot& snapshot, std::size_t at, const AuditRow& row, Cause cause) {
  const AuditedFile& file = snapshot.audit.value.files[at];
  Finding finding{.cause = cause, .subject = file.path, .module = module_of_file(file), .summary = row.why};
  finding.evidence.push_back({"/audit/value/files/" + std::to_string(at) + "/" + row.field, row.value});
  finding.fixes.push_back(cause == Cause::ExecutableStack ? executable_stack_from_the_start(snapshot)
                                                          : repair_of_file(snapshot, file, cause));
  return finding;
}

// The user has asked for every extension, so one that would fail is a finding even if nothing imports it.
// If no catalogued cause fits, it is Unknown with everything that is known. What a package may load by
// itself is not held against it.
CheckResult every_extension_loads(const Snapshot& snapshot) {
  CheckResult result;
  if (!snapshot.audit.present()) {
    result.unknown.push_back(message("the compiled extensions could not be read: {}", snapshot.audit.note));
    return result;
  }
  const Audit& audit = snapshot.audit.value;
  const bool linked = audit_of_linked(snapshot);
  const std::string machine = interpreter_machine(snapshot);
  const std::optional<bool> stack_refused = refuses_executable_stacks(snapshot);
  std::size_t open = 0;
  for (std::size_t i = 0; i < audit.files.size(); ++i) {
    const AuditedFile& file = audit.files[i];
    if (under_diagnosis(snapshot, file)) continue;  // its own checks say more
    const AuditRow row = judge(file, machine, stack_refused);
    // Such a file loads if its package has loaded libraries of its own before, which only running
    // it would show.
    const bool settled = row.field.starts_with("settled_by");
    if (row.verdict == AuditVerdict::Unknown && settled) ++open;
    if (row.verdict == AuditVerdict::Unknown && !settled)
      result.unknown.push_back(message("whether {} would load is not known: {}", file.path, row.why));
    if (row.verdict != AuditVerdict::Fails) continue;
    if (const auto cause = cause_from_slug(row.cause))
      result.findings.push_back(audit_finding(snapshot, i, row, *cause));
    else
      result.unknown.push_back(message("{} would not load: {}", file.path, row.why));
  }
  for (const Message& part : audit.unreadable)
    result.unknown.push_back(message("a directory was not read: {}", part));
  if (linked) {
    result.not_checked.push_back(other_extensions());
    return result;
  }
  if (open == 1)
    result.not_checked.push_back(
        message("one extension loads only after its package has loaded libraries of its own"));
  if (open > 1)
    result.not_checked.push_back(
        message("{} extensions load only after their packages have loaded libraries of their own", open));
  return result;
}

}  // namespace

extern const Check kEveryExtensionLoads{.id = "every-extension-loads",
                                        .question = "Can every compiled extension be loaded?",
                                        .needs = 0,
                                        .confirmed_by_import = false,
                                        .not_applicable = not_asked,
                                        .run = every_extension_loads,
                                        .left_out = audit_left_out};

namespace {

// Why no import was tried.
Message not_tried(const Snapshot& snapshot) {
  const auto& seen = snapshot.observations;
  if (seen.state == ProbeState::NotRun)
    return seen.note.empty() ? message("no import was tried") : message("no import was tried: {}", seen.note);
  return seen.state == ProbeState::Absent ? seen.note : "";
}

Message import_left_out(const Snapshot& snapshot) {
  return snapshot.observations.state == ProbeState::NotRun ? not_tried(snapshot) : "";
}

Message what_was_tried(const Observation& seen) {
  if (seen.variant == "start") return message("the interpreter's own startup");
  return seen.variant == "torch-first" ? message("`import {}` after torch", seen.module)
                                       : message("`import {}`", seen.module);
}

// "`import x` after torch did not end within 60 s", rounded to whole seconds.
Message how_it_ended(const Observation& seen) {
  const Message tried = what_was_tried(seen);
  if (seen.outcome == "timeout")
    return message("{} exceeded its time limit of {} s", tried, (seen.duration_ms + 500) / 1000);
  return seen.signal != 0 ? message("{} killed the process", tried) : message("{} did not return", tried);
}

Finding ended_badly(const Snapshot& snapshot, const Observation& seen, const std::string& pointer,
                    const std::string& subject) {
  const bool hung = seen.outcome == "timeout";
  const Cause cause = hung ? Cause::ImportHang : Cause::ImportCrash;
  Finding finding{.cause = cause,
                  .subject = subject,
                  .module = seen.module,
                  .summary = how_it_ended(seen),
                  .evidence = {{pointer + "/outcome", seen.outcome}},
                  .fixes = module_or(snapshot, seen.module, Advice{table_text(info(cause).next_step)})};
  if (!seen.message.empty()) {
    finding.summary = message("{}: {}", finding.summary, seen.message);
    finding.evidence.push_back({pointer + "/message", english(seen.message)});
  }
  if (!hung) finding.evidence.push_back({pointer + "/signal", std::to_string(seen.signal)});
  return finding;
}

// The file that import takes, if there is one.
std::string subject_of(const Snapshot& snapshot, const Observation& seen) {
  if (seen.variant == "start") return snapshot.python.value.requested;
  const auto copy = selected_copy(snapshot, seen.module);
  return copy ? copy->extension->path : seen.module;
}

bool imports_it(const Snapshot& snapshot, const std::string& package, const std::string& module) {
  return std::ranges::any_of(snapshot.packages.value.imports, [&](const PackageImport& import) {
    return import.package == package && import.target == module;
  });
}

// A package that hangs or dies while it imports its module does so because of the module: one
// finding names both.
bool told_of_its_module(const Snapshot& snapshot, const Observation& seen, const std::string& pointer,
                        std::vector<Finding>& findings) {
  if (seen.variant != "package" && seen.variant != "sibling") return false;
  const Cause cause = seen.outcome == "timeout" ? Cause::ImportHang : Cause::ImportCrash;
  for (Finding& finding : findings) {
    if (finding.cause != cause || !imports_it(snapshot, seen.module, finding.module)) continue;
    finding.summary = seen.raised_at.empty()
                          ? message("{}; `import {}` ends the same way", finding.summary, seen.module)
                          : message("{}; `import {}` ends the same way, at {}", finding.summary, seen.module,
                                    seen.raised_at);
    finding.evidence.push_back({pointer + "/outcome", seen.outcome});
    return true;
  }
  return false;
}

// Only crashes and timeouts become findings here. Errors of an import are weighed against the findings of
// the other checks in reconcile.cc.
CheckResult import_observed(const Snapshot& snapshot) {
  if (snapshot.observations.state == ProbeState::Failed) return {{}, {snapshot.observations.note}};
  CheckResult result;
  const auto& all = snapshot.observations.value;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Observation& seen = all[i];
    if (&seen != deciding_import(snapshot, seen.module)) continue;
    if (seen.outcome != "crashed" && seen.outcome != "timeout") continue;
    const std::string pointer = "/observations/value/" + std::to_string(i);
    if (told_of_its_module(snapshot, seen, pointer, result.findings)) continue;
    result.findings.push_back(ended_badly(snapshot, seen, pointer, subject_of(snapshot, seen)));
  }
  return result;
}

}  // namespace

extern const Check kImportObserved{.id = "import-observed",
                                   .question = "Do torch and the modules import in a fresh process?",
                                   .needs = 0,
                                   .confirmed_by_import = false,
                                   .not_applicable = not_tried,
                                   .run = import_observed,
                                   .left_out = import_left_out};

}  // namespace scankit::checks

// SPDX-License-Identifier: Apache-2.0
// Weighs static findings against observed imports (ARCHITECTURE.md, decision 3): an observed success
// outranks a static finding, and a failure that no check explains is unknown, with everything that was
// observed, and never healthy.
#include <algorithm>

#include "doctor/base/message.h"
#include "doctor/base/text.h"
#include "doctor/checks/check.h"
#include "doctor/checks/packages.h"
#include "doctor/checks/snapshot_queries.h"

namespace scankit::checks {
namespace {

// nullptr for an outcome that does not come from a check of checks.def.
const Check* check_of(const Outcome& outcome) {
  const auto found = std::ranges::find(all_checks(), outcome.check, &Check::id);
  return found == all_checks().end() ? nullptr : *found;
}

// What only a package declares is imported without the current directory (observed_program.h), which says nothing of a
// file there: the user's own command would take that.
bool is_of_another_file(const Snapshot& snapshot, const Observation& seen) {
  const auto copy = selected_copy(snapshot, seen.module);
  if (!copy || (*copy)->sys_path_index < 0 || seen.file.empty()) return false;
  const PathEntry& place =
      snapshot.python.value.sys_path.at(static_cast<std::size_t>((*copy)->sys_path_index));
  return place.origin == "cwd" && seen.file != (*copy)->path && seen.file != (*copy)->real_path;
}

// CPython opens modules with RTLD_NOW, so a module that was imported has every name, version and library
// that it needs. The finding stays as a note, so that the reader sees what was weighed.
void withdraw(Report& report, const Observation& seen) {
  if (is_of_another_file(report.snapshot, seen)) return;
  for (Outcome& outcome : report.outcomes) {
    const Check* check = check_of(outcome);
    if (check == nullptr || !check->confirmed_by_import) continue;
    for (Finding& finding : outcome.findings) {
      if (finding.module != seen.module || finding.severity() != Severity::Error) continue;
      finding.circumstances.push_back(Circumstance::ImportWorked);
      finding.summary = seen.file.empty()
                            ? message("{} - withdrawn: its import was observed to work", finding.summary)
                            : message("{} - withdrawn: its import was observed to work from {}",
                                      finding.summary, seen.file);
      finding.fixes.clear();
    }
  }
}

// Whether the finding is about a file inside the package.
bool lies_in(const AskedPackage* package, const Finding& finding) {
  return package != nullptr && finding.subject.starts_with(package->path + "/");
}

// Whether the import's own message is evidence of the finding: one cause may end several imports.
bool rests_on(const Report& report, const Finding& finding, const Observation* seen) {
  const bool of_packages =
      finding.cause == Cause::MissingPythonDependency || finding.cause == Cause::TorchNotImportedFirst;
  if (seen == nullptr || !of_packages) return false;
  const auto at = seen - report.snapshot.observations.value.data();
  const std::string pointer = "/observations/value/" + std::to_string(at) + "/";
  return std::ranges::any_of(finding.evidence,
                             [&](const Evidence& one) { return one.fact.starts_with(pointer); });
}

// Whether an error explains why the module's import failed. Missing code for a GPU does not: it shows
// only at a call.
bool explained(const Report& report, const std::string& module) {
  const AskedPackage* package = asked_package(report.snapshot, module);
  const Observation* seen = deciding_import(report.snapshot, module);
  const auto explains = [&](const Finding& finding) {
    return (finding.module == module || lies_in(package, finding) || rests_on(report, finding, seen)) &&
           finding.severity() == Severity::Error && finding.cause != Cause::NoKernelImage;
  };
  return std::ranges::any_of(report.outcomes, [&](const Outcome& outcome) {
    return std::ranges::any_of(outcome.findings, explains);
  });
}

Message import_in_words(const Observation& seen) {
  if (seen.variant == "start") return seen.message;
  if (seen.variant == "torch-first")
    return message("`import {}` after torch fails with {}: {}", seen.module, seen.exception, seen.message);
  return message("`import {}` fails with {}: {}", seen.module, seen.exception, seen.message);
}

Outcome* outcome_of(Report& report, std::string_view check) {
  const auto found = std::ranges::find(report.outcomes, check, &Outcome::check);
  return found == report.outcomes.end() ? nullptr : &*found;
}

// Failures that need no explanation: "No module named X" for a module that nothing needs, and a module
// that needs a torch that is not there.
bool to_be_expected(const Snapshot& snapshot, const Observation& seen) {
  const auto copy = selected_copy(snapshot, seen.module);
  if (copy) return snapshot.torch.state == ProbeState::Absent && (*copy)->uses_torch;
  return seen.exception == "ModuleNotFoundError" &&
         seen.message.english().find("'" + seen.module + "'") != std::string::npos;
}

bool torch_import_failed(const Snapshot& snapshot) {
  const Observation* torch = deciding_import(snapshot, "torch");
  return torch != nullptr && torch->outcome != "ok";
}

// Makes a finding of the interpreter's own words, if the files explain nothing: what the loader says it
// could not do is true.
void add_as_read(Outcome& outcome, const Snapshot& snapshot, const Observation& seen, Cause cause) {
  const auto copy = selected_copy(snapshot, seen.module);
  const auto at = static_cast<std::size_t>(&seen - snapshot.observations.value.data());
  outcome.findings.push_back(
      {.cause = cause,
       .subject = copy ? copy->extension->path : seen.module,
       .module = seen.module,
       .summary = message("{}: {}", import_in_words(seen), seen.reading),
       .evidence = {{"/observations/value/" + std::to_string(at) + "/message", english(seen.message)}},
       .fixes = module_fixes(snapshot, seen.module, table_text(info(cause).next_step)),
       .circumstances = {Circumstance::EndedImport}});
  outcome.state = CheckState::Found;
}

// An import that failed without an explanation makes the verdict unknown, unless the rules for logs
// understand its message.
void add_unexplained(Report& report, const Observation& seen) {
  Outcome* outcome = outcome_of(report, "import-observed");
  if (outcome == nullptr) return;
  if (const auto cause = cause_from_slug(seen.reads_as))
    return add_as_read(*outcome, report.snapshot, seen, *cause);
  outcome->why = clauses_of(
      {outcome->why, seen.reading.empty() ? message("{}, and no check explains it", import_in_words(seen))
                                          : message("{}: {}", import_in_words(seen), seen.reading)});
  if (outcome->findings.empty()) outcome->state = CheckState::Unknown;
  outcome->could_hide_error = true;
}

// A package that lacks another package has not come to load its compiled parts.
bool lacks_another(const AskedPackage& package, const Observation& seen) {
  if (seen.outcome != "error" || seen.exception != "ModuleNotFoundError") return false;
  const std::string top = package.name.substr(0, package.name.find('.'));
  return seen.message.english().find("'" + top + ".") == std::string::npos &&
         seen.message.english().find("'" + top + "'") == std::string::npos;
}

// If the interpreter's message names a file, that file is the reason and no other: "Could not load this
// library: FILE".
bool names_another_part(const Report& report, const AskedPackage& package, const Observation& seen,
                        const Finding& finding) {
  const auto named = [&](const Finding& other) {
    return lies_in(&package, other) && other.severity() == Severity::Error &&
           seen.message.english().find(other.subject) != std::string::npos;
  };
  return !named(finding) && std::ranges::any_of(report.outcomes, [&](const Outcome& outcome) {
    return std::ranges::any_of(outcome.findings, named);
  });
}

// Compiled parts of a package that imports all the same, or fails because something else is missing, are
// a loss but not the reason.
void weigh_parts(Report& report, const AskedPackage& package, const Observation& seen) {
  const bool imports = seen.outcome == "ok", lacks = lacks_another(package, seen);
  for (Outcome& outcome : report.outcomes)
    for (Finding& finding : outcome.findings) {
      if (!lies_in(&package, finding) || finding.severity() != Severity::Error) continue;
      if (!imports && !lacks && !names_another_part(report, package, seen, finding)) continue;
      finding.circumstances.push_back(imports ? Circumstance::PackageImportsWithoutIt
                                              : Circumstance::AnotherReasonFailed);
      if (imports)
        finding.summary = message("{}; `import {}` still works, without the contents of this file",
                                  finding.summary, package.name);
    }
}

// Parts that would not load for a reason that is not in the catalogue (one of several FFmpeg releases,
// for example) hide no error if everything that was named is observed to import.
void settle_parts(Report& report) {
  const Snapshot& snapshot = report.snapshot;
  const auto imports = [&](const AskedPackage& package) {
    const Observation* seen = deciding_import(snapshot, package.name);
    return seen != nullptr && seen->outcome == "ok";
  };
  Outcome* audit = outcome_of(report, "every-extension-loads");
  if (audit != nullptr && !snapshot.audit.value.packages.empty() &&
      std::ranges::all_of(snapshot.packages_asked, imports))
    audit->could_hide_error = false;
}

// Whether an error explains the failed import of the package: about its own files, about torch, or about
// a module that it needs.
bool package_explained(const Report& report, const PackageFound& package) {
  const auto needs = [&](const std::string& module) {
    return std::ranges::any_of(report.snapshot.packages.value.imports, [&](const PackageImport& import) {
      return import.target == module && import.caught.empty();
    });
  };
  const Observation* seen = seen_package(report.snapshot, package.name);
  const auto explains = [&](const Finding& finding) {
    // A clone in the current directory that was never built has its own note, and the environment
    // lacks nothing.
    if (finding.cause == Cause::ModuleNotBuilt && finding.severity() == Severity::Note)
      return finding.subject == package.name;
    return finding.severity() == Severity::Error && finding.cause != Cause::NoKernelImage &&
           (rests_on(report, finding, seen) || finding.module == package.name || finding.module == "torch" ||
            needs(finding.module) || finding.subject.starts_with(package.path + "/"));
  };
  return std::ranges::any_of(report.outcomes, [&](const Outcome& outcome) {
    return std::ranges::any_of(outcome.findings, explains);
  });
}

// The same as reconcile() does for modules, for the packages around them.
void weigh_packages(Report& report) {
  for (const PackageFound& package : report.snapshot.packages.value.found)
    if (const Observation* seen = seen_package(report.snapshot, package.name);
        seen != nullptr && seen->outcome == "error" && !package_explained(report, package))
      add_unexplained(report, *seen);
}

// An import that failed is not answered with "yes" where another check's finding says why it failed.
void refer_to_explanations(Report& report, const std::vector<std::string>& modules) {
  std::vector<std::string> failed;
  for (const std::string& module : modules)
    if (const Observation* seen = deciding_import(report.snapshot, module);
        seen != nullptr && seen->outcome != "ok" && explained(report, module))
      failed.push_back(module);
  Outcome* outcome = outcome_of(report, "import-observed");
  if (failed.empty() || outcome == nullptr || outcome->state != CheckState::Passed) return;
  outcome->state = CheckState::NotApplicable;
  outcome->why = message("a finding explains why this does not import: {}", join(failed));
}

// Unread facts about files cannot hide an import error once torch and every module were
// observed to import.
void settle_unknowns(Report& report) {
  const Snapshot& snapshot = report.snapshot;
  const auto imports = [&](const std::string& module) {
    const Observation* seen = deciding_import(snapshot, module);
    return seen != nullptr && seen->outcome == "ok";
  };
  const bool torch_fine = snapshot.torch.state == ProbeState::Absent || imports("torch");
  const auto module_fine = [&](const std::string& module) {
    if (imports(module)) return true;
    const Observation* seen = deciding_import(snapshot, module);
    return seen != nullptr && !selected_copy(snapshot, module) && to_be_expected(snapshot, *seen) &&
           needing_importers(snapshot, module).empty() && !was_asked_for(snapshot, module) &&
           snapshot.importers.state != ProbeState::Failed;
  };
  if (!torch_fine || !std::ranges::all_of(snapshot.modules, module_fine)) return;
  for (Outcome& outcome : report.outcomes) {
    const Check* check = check_of(outcome);
    if (check != nullptr && check->confirmed_by_import && outcome.state == CheckState::Unknown)
      outcome.could_hide_error = false;
  }
}

}  // namespace

void reconcile(Report& report) {
  const Snapshot& snapshot = report.snapshot;
  std::vector<std::string> modules = {"python", "torch"};
  modules.insert(modules.end(), snapshot.modules.begin(), snapshot.modules.end());
  for (const std::string& module : modules) {
    const Observation* seen = deciding_import(snapshot, module);
    if (seen == nullptr) continue;
    if (seen->outcome == "ok") withdraw(report, *seen);
    if (const AskedPackage* package = asked_package(snapshot, module)) weigh_parts(report, *package, *seen);
    if (seen->outcome != "error" || explained(report, module) || to_be_expected(snapshot, *seen)) continue;
    // A module that was never tried after torch, because torch itself failed: its failure without
    // torch says nothing.
    if (module != "torch" && seen->variant == "bare" && torch_import_failed(snapshot)) continue;
    add_unexplained(report, *seen);
  }
  weigh_packages(report);
  refer_to_explanations(report, modules);
  settle_parts(report);
  settle_unknowns(report);
}

}  // namespace scankit::checks

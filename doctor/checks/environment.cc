// SPDX-License-Identifier: Apache-2.0
// $VIRTUAL_ENV, ./.venv and $CONDA_PREFIX say which environment is meant. If its Python cannot be
// started, that is the answer: another Python of PATH would be healthy or broken for reasons of its own.
// The file also has the checks of LD_LIBRARY_PATH and of interrupted repairs.
#include <algorithm>
#include <set>

#include "doctor/base/message.h"
#include "doctor/base/text.h"
#include "doctor/checks/check.h"
#include "doctor/checks/snapshot_queries.h"
#include "doctor/model/snapshot_variables.h"

namespace scankit::checks {
namespace {

Message none_is_broken(const Snapshot& snapshot) {
  if (snapshot.broken_environment || snapshot.python.present()) return "";
  return message("no environment was selected");
}

// The repair is a variable to unset, or a command in words.
Fix environment_repair(const BrokenEnvironment& broken) {
  if (broken.command.starts_with("unset")) return SetEnvironment{broken.origin, ""};
  return Advice{broken.command.empty() ? broken.repair : message("{}: {}", broken.repair, broken.command)};
}

CheckResult active_environment_usable(const Snapshot& snapshot) {
  const auto broken = snapshot.broken_environment;
  if (!broken) return {};
  Finding finding{.cause = Cause::EnvironmentPythonGone,
                  .subject = broken->path,
                  .module = "python",
                  .summary = message("{}: {}", broken->origin, broken->reason)};
  finding.evidence = {{"/broken_environment/path", broken->path},
                      {"/broken_environment/reason", broken->reason.english()}};
  finding.fixes = {environment_repair(*broken)};
  CheckResult result;
  result.findings.push_back(std::move(finding));
  return result;
}

}  // namespace

extern const Check kActiveEnvironmentUsable{.id = "active-environment-usable",
                                            .question = "Does the active environment's Python work?",
                                            .needs = 0,
                                            .confirmed_by_import = false,
                                            .not_applicable = none_is_broken,
                                            .run = active_environment_usable};

namespace {

constexpr const char* kVariable = "LD_LIBRARY_PATH";

Message not_set(const Snapshot& snapshot) {
  const auto variable = snapshot.environment.find(kVariable);
  return variable == snapshot.environment.end() || variable->second.empty()
             ? message("LD_LIBRARY_PATH is not set")
             : "";
}

// The directory of LD_LIBRARY_PATH in which the library was found: "/usr/local/cuda-12.4/lib64"; "" if
// another step of the search found it.
std::string folder_of(const BindingMismatch& mismatch) {
  const std::string step = std::string(kVariable) + " ";
  return mismatch.found_by.starts_with(step) ? mismatch.found_by.substr(step.size()) : "";
}

// The variable without those directories; an empty value means to unset it.
Fix without(const Snapshot& snapshot, const std::set<std::string>& folders) {
  std::vector<std::string> rest;
  for (const std::string& entry : split(snapshot.environment.at(kVariable), ":;")) {  // ld.so(8)
    const auto same = [&](const std::string& folder) {
      return !entry.empty() && path_normalize(folder) == path_normalize(entry);
    };
    if (std::ranges::none_of(folders, same)) rest.push_back(entry);
  }
  return SetEnvironment{kVariable, join(rest, ":")};
}

Message shadow_summary(const BindingMismatch& mismatch) {
  const std::string needed_by = path_basename(mismatch.needed_by), folder = folder_of(mismatch);
  if (mismatch.name.empty())
    return message(
        "{} needs version {} of {}; LD_LIBRARY_PATH makes the loader use {}, which does not define it, "
        "while {} would be used without {} in it and defines it",
        needed_by, mismatch.version, mismatch.soname, mismatch.library, mismatch.without_library_path,
        folder);
  return message(
      "{} needs {} from {}; LD_LIBRARY_PATH makes the loader use {}, which does not export it, while {} "
      "would be used without {} in it and exports it",
      needed_by, mismatch.name, mismatch.soname, mismatch.library, mismatch.without_library_path, folder);
}

// Reports only what is proven: the file that the variable selects lacks what is needed, and the file that
// would be found without it has it.
void look_for_shadows(const Snapshot& snapshot, const std::vector<BindingMismatch>& mismatches,
                      const std::string& module, const std::string& pointer, CheckResult& result) {
  const auto shadowed = [](const BindingMismatch& m) {
    return !folder_of(m).empty() && !m.without_library_path.empty();
  };
  const auto first = std::ranges::find_if(mismatches, shadowed);
  if (first == mismatches.end()) return;
  Finding finding{.cause = Cause::LdLibraryPathShadow,
                  .subject = first->library,
                  .module = module,
                  .summary = shadow_summary(*first)};
  std::set<std::string> folders;
  for (std::size_t i = 0; i < mismatches.size(); ++i) {
    if (!shadowed(mismatches[i])) continue;
    const std::string at = pointer + "/" + std::to_string(i);
    if (folders.insert(folder_of(mismatches[i])).second)
      finding.evidence.push_back({at + "/found_by", mismatches[i].found_by});
    finding.evidence.push_back(mismatches[i].name.empty() ? Evidence{at + "/version", mismatches[i].version}
                                                          : Evidence{at + "/name", mismatches[i].name});
    // The same file is not repeated for each name.
    if (std::ranges::none_of(finding.evidence, [&](const Evidence& said) {
          return said.value == mismatches[i].without_library_path;
        }))
      finding.evidence.push_back({at + "/without_library_path", mismatches[i].without_library_path});
  }
  finding.fixes.push_back(without(snapshot, folders));
  result.findings.push_back(std::move(finding));
}

// torch's own bindings first, then those of each module.
CheckResult library_path_harmless(const Snapshot& snapshot) {
  CheckResult result;
  look_for_shadows(snapshot, snapshot.torch.value.mismatches, "torch", "/torch/value/mismatches", result);
  for (const Copy& copy : selected_copies(snapshot))
    look_for_shadows(snapshot, copy->mismatches, copy->module, copy.pointer + "/mismatches", result);
  return result;
}

}  // namespace

extern const Check kLibraryPathHarmless{
    .id = "library-path-harmless",
    .question = "Does LD_LIBRARY_PATH leave the right libraries in place?",
    .needs = kPython | kTorch,
    .confirmed_by_import = true,
    .not_applicable = not_set,
    .run = library_path_harmless};

// A `scankit fix` that was killed has left a journal, and perhaps a mixture of the old and the new state.
// Other checks find what is broken by that; this one prints the command that settles it. It has no
// catalogued cause, because it is scankit's own state and not a fault of a module.
namespace {

// `scankit restore` searches below the prefix unless it is told about the user site or another directory.
std::string restore_command(const Snapshot& snapshot, const std::string& journal) {
  const Python& python = snapshot.python.value;
  const std::string base = journal.substr(0, journal.find("/.scankit/journal/"));
  std::string command = "scankit restore --python " +
                        shell_quoted(python.requested.empty() ? python.executable : python.requested);
  if (base == python.prefix) return command;
  const bool on_path =
      std::ranges::any_of(python.sys_path, [&](const PathEntry& entry) { return entry.path == base; });
  return command + " --target " + (on_path ? shell_quoted(base) : "user");
}

// --so looks at files, not at an environment that an interrupted repair could affect.
Message nothing_unfinished(const Snapshot& snapshot) {
  if (snapshot.repairs.state != ProbeState::NotRun) return "";
  if (!snapshot.named_files.empty()) return message("only the given files were examined");
  return message("the snapshot does not record whether a repair was interrupted");
}
Message repairs_left_out(const Snapshot& snapshot) {
  return snapshot.named_files.empty() ? nothing_unfinished(snapshot) : "";
}

CheckResult repairs_finished(const Snapshot& snapshot) {
  CheckResult result;
  if (snapshot.repairs.state == ProbeState::Failed) result.not_checked.push_back(snapshot.repairs.note);
  for (const UnfinishedRepair& repair : snapshot.repairs.value) {
    if (repair.running)
      result.not_checked.push_back(
          message("a scankit fix of {} is running ({}): run the diagnosis again when it has finished",
                  repair.module, repair.journal));
    else if (repair.state.empty())
      result.not_checked.push_back(message(
          "{} is not a journal that this scankit reads: while it exists, fix and restore change nothing here",
          repair.journal));
    else
      result.not_checked.push_back(
          message("a scankit fix of {} was interrupted ({}, state {}): `{}` restores the previous state",
                  repair.module, repair.journal, repair.state, restore_command(snapshot, repair.journal)));
  }
  return result;
}

}  // namespace

extern const Check kRepairsFinished{.id = "repairs-finished",
                                    .question = "Were all previous scankit fix runs completed?",
                                    .needs = kPython,
                                    .confirmed_by_import = false,
                                    .not_applicable = nothing_unfinished,
                                    .run = repairs_finished,
                                    .left_out = repairs_left_out};

}  // namespace scankit::checks

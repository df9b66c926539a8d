// SPDX-License-Identifier: Apache-2.0
// What the sources in the current directory want of compiled modules. Only names that are known to be
// compiled modules count, and an error needs a program that comes to the line: a checkout, its tests and its
// spare scripts may want what nobody starts.
#include <algorithm>

#include "doctor/base/files.h"
#include "doctor/base/message.h"
#include "doctor/base/text.h"
#include "doctor/checks/check.h"
#include "doctor/checks/repairs.h"
#include "doctor/checks/snapshot_queries.h"

namespace scankit::checks {
namespace {

const ProjectModule& module_of(const Project& project, const ProjectImport& import) {
  return *std::ranges::find(project.modules, import.module, &ProjectModule::module);
}

bool is_there(const Project& project, const ProjectImport& import) {
  return !module_of(project, import).path.empty();
}

// The guarded imports of one file are alternatives, and the first is the one that it prefers: VMamba tries
// oflex, core and mamba's module, and most people have one of them.
const ProjectImport* alternative(const Project& project, const ProjectImport& import) {
  for (const ProjectImport& other : project.imports)
    if (other.file == import.file && !other.caught.empty() && other.module != import.module &&
        is_there(project, other))
      return &other;
  return nullptr;
}
bool is_preferred(const Project& project, const ProjectImport& import) {
  return std::ranges::none_of(project.imports, [&](const ProjectImport& other) {
    return other.file == import.file && !other.caught.empty() && other.line < import.line &&
           other.module != import.module;
  });
}

// The sources that build a module want it only once it is built.
bool builds_it_itself(const Snapshot& snapshot, const ProjectImport& import) {
  const auto& tree = snapshot.sources.value;
  return snapshot.sources.present() && tree.folder == path_dirname(import.file) &&
         std::ranges::find(tree.modules, import.module) != tree.modules.end();
}

// A file that tries several and has none runs its last resort; a single optional import may be of no weight.
bool tries_others(const Project& project, const ProjectImport& import) {
  return std::ranges::any_of(project.imports, [&](const ProjectImport& other) {
    return other.file == import.file && !other.caught.empty() && other.module != import.module;
  });
}

// What becomes of the program without the module.
enum class Loss { Fails, Slower, Nothing };
Loss loss_of(const Snapshot& snapshot, const ProjectImport& import) {
  const Project& project = snapshot.project.value;
  if (import.program.empty() || builds_it_itself(snapshot, import)) return Loss::Nothing;
  if (import.caught.empty()) return import.in_function ? Loss::Nothing : Loss::Fails;
  if (!is_preferred(project, import)) return Loss::Nothing;
  if (import.used_at != 0) return Loss::Fails;
  return alternative(project, import) == nullptr && tries_others(project, import) ? Loss::Slower
                                                                                  : Loss::Nothing;
}

std::string place(const std::string& file, unsigned line) { return file + ":" + std::to_string(line); }

Message what_happens(const Project& project, const ProjectImport& import) {
  const std::string where = place(import.file, import.line);
  if (import.caught.empty()) return message("{} imports {}", where, import.module);
  if (import.used_at != 0)
    return message("{} imports {} in a try block, and line {} uses it without asking whether it is there",
                   where, import.module, import.used_at);
  if (const ProjectImport* other = alternative(project, import))
    return message("{} tries {} and can do without it: {} is installed", where, import.module, other->module);
  return message("{} tries {} and continues without it, by slower code or with an error at its first use",
                 where, import.module);
}

Message who_builds(const ProjectModule& module) {
  if (!module.setup.empty()) return message("{} builds it", place(module.setup, module.setup_line));
  return message("it is a compiled module of {}", module.built_by);
}

std::vector<Fix> repairs_of(const Snapshot& snapshot, const ProjectModule& module) {
  Fix build = Advice{message("build {} from the sources of {}", module.module, module.built_by)};
  if (!module.setup.empty()) build = BuildProject{path_dirname(module.setup), module.module};
  return module_or(snapshot, module.module, std::move(build));
}

// A finding for each module, about the gravest of its imports; the others are evidence.
Finding absence(const Snapshot& snapshot, const ProjectModule& module, std::size_t gravest) {
  const Project& project = snapshot.project.value;
  const ProjectImport& import = project.imports[gravest];
  const Loss loss = loss_of(snapshot, import);
  Finding finding{.cause = Cause::ProjectModuleMissing,
                  .subject = place(import.file, import.line),
                  .module = module.module,
                  .summary = message("no file of {} is on this Python's path", module.module)};
  std::vector<Message> parts{finding.summary, what_happens(project, import)};
  if (import.program != import.file) parts.push_back(message("{} reaches that line", import.program));
  parts.push_back(who_builds(module));
  finding.summary = clauses_of(parts);
  const auto add = [&](std::size_t i) {
    const std::string pointer = "/project/value/imports/" + std::to_string(i);
    finding.evidence.push_back({pointer + "/file", project.imports[i].file});
    finding.evidence.push_back({pointer + "/line", std::to_string(project.imports[i].line)});
    if (project.imports[i].used_at != 0)
      finding.evidence.push_back({pointer + "/used_at", std::to_string(project.imports[i].used_at)});
  };
  add(gravest);
  for (std::size_t i = 0; i < project.imports.size(); ++i)
    if (i != gravest && project.imports[i].module == module.module) add(i);
  finding.fixes = repairs_of(snapshot, module);
  if (loss == Loss::Nothing) finding.circumstances.push_back(Circumstance::NoProgramFailsWithoutIt);
  if (loss == Loss::Slower) finding.circumstances.push_back(Circumstance::ProgramGoesOnWithoutIt);
  return finding;
}

Message nothing_wanted(const Snapshot& snapshot) {
  if (!snapshot.project.present())
    return snapshot.project.note.empty() ? message("the sources in the current directory were not read")
                                         : snapshot.project.note;
  if (snapshot.project.value.imports.empty())
    return message("no source in the current directory imports a compiled module");
  return "";
}

CheckResult project_modules_present(const Snapshot& snapshot) {
  CheckResult result;
  const Project& project = snapshot.project.value;
  std::vector<std::string> unreached;
  for (const ProjectModule& module : project.modules) {
    if (!module.path.empty() || !needing_importers(snapshot, module.module).empty()) continue;
    std::optional<std::size_t> gravest;
    for (std::size_t i = 0; i < project.imports.size(); ++i)
      if (project.imports[i].module == module.module &&
          (!gravest || loss_of(snapshot, project.imports[i]) < loss_of(snapshot, project.imports[*gravest])))
        gravest = i;
    if (!gravest) continue;
    // What nobody starts here is nobody's problem: one line for all of it, and no repairs.
    if (project.imports[*gravest].program.empty())
      unreached.push_back(module.module);
    else
      result.findings.push_back(absence(snapshot, module, *gravest));
  }
  if (!unreached.empty())
    result.not_checked.push_back(
        message("whether {} will be needed: no program in the current directory reaches its import",
                join(unreached)));
  return result;
}

}  // namespace

extern const Check kProjectModulesPresent{
    .id = "project-modules-present",
    .question = "Are the compiled modules installed that the sources in the current directory import?",
    .needs = kPython,
    .confirmed_by_import = true,
    .not_applicable = nothing_wanted,
    .run = project_modules_present};

}  // namespace scankit::checks

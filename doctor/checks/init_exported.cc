// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/checks/check.h"
#include "doctor/checks/repairs.h"
#include "doctor/checks/view.h"

namespace scankit {
namespace {

// A file whose name carries a tag of Python's, or that somebody imports, claims to be a module. A plain
// "x.so" may as well be a library that a package opens itself.
bool claims_to_be_a_module(const Snapshot& snapshot, const Copy& copy) {
  return !copy->tag.empty() || was_asked_for(snapshot, copy->module) ||
         !needing_importers(snapshot, copy->module).empty();
}

// --so WHEEL or FOLDER takes every library that needs torch, module or not; a file that is named itself is
// meant as one.
bool lies_in_what_was_named(const Snapshot& snapshot, const Copy& copy) {
  const auto& named = snapshot.named_files;
  return !named.empty() && std::ranges::none_of(named, [&](const std::string& name) {
    return path_basename(name) == path_basename(copy->path);
  });
}

Finding named_otherwise(const Snapshot& snapshot, const Copy& copy) {
  return {.cause = Cause::VariantNameMismatch,
          .subject = copy->path,
          .module = copy->module,
          .summary = say("the file is named {} and holds {}", copy->module, join(copy->inits)),
          .evidence = {copy.at("inits", 0, "", copy->inits.front())},
          .fixes = module_or(snapshot, copy->module,
                             Advice{say("give the file the name of the module that it holds")})};
}

// Python 2 called initNAME; a module of its time has that and nothing else.
Finding of_python_2(const Snapshot& snapshot, const Copy& copy) {
  return {.cause = Cause::PythonAbiTagMismatch,
          .subject = copy->path,
          .module = copy->module,
          .summary = say("it exports {}, which Python 2 called; Python 3 calls PyInit_{}",
                         copy->inits.front(), copy->module),
          .evidence = {copy.at("inits", 0, "", copy->inits.front())},
          .fixes = module_fixes(snapshot, copy->module, say("build {} for this Python", copy->module))};
}

Finding no_module_inside(const Snapshot& snapshot, const Copy& copy) {
  return {
      .cause = Cause::VariantNameMismatch,
      .subject = copy->path,
      .module = copy->module,
      .summary = say("the file is named as a Python module and exports no PyInit_ function: it is a library, "
                     "perhaps one of operators that torch.ops.load_library opens"),
      .evidence = {copy.at("has_init", "false")},
      .fixes =
          module_fixes(snapshot, copy->module,
                       say("open it by torch.ops.load_library, or build {} with its binding", copy->module))};
}

// importlib looks for PyInit_ and the module's last name in the file it chose by name.
CheckResult init_exported(const Snapshot& snapshot) {
  CheckResult result;
  for (const Copy& copy : whole_copies(snapshot)) {
    if (copy->has_init) continue;
    if (copy->inits.empty() && lies_in_what_was_named(snapshot, copy) &&
        (copy->registers_ops || path_basename(copy->path).starts_with("lib"))) {
      result.not_checked.push_back(
          say("{} holds no Python module: it is loaded as a library of its package", copy->path));
      continue;
    }
    if (!copy->inits.empty() && copy->inits.front().starts_with("PyInit_"))
      result.findings.push_back(named_otherwise(snapshot, copy));
    else if (!copy->inits.empty())
      result.findings.push_back(of_python_2(snapshot, copy));
    else if (claims_to_be_a_module(snapshot, copy))
      result.findings.push_back(no_module_inside(snapshot, copy));
    else
      result.unknown.push_back(
          say("{} exports no PyInit_ function: a library, but no Python module", copy->path));
  }
  return result;
}

}  // namespace

extern const Check kInitExported{.id = "init-exported",
                                 .question = "Does each file hold the module that its name says?",
                                 .needs = kExtensions | kImages,
                                 .settled_by_import = true,
                                 .not_applicable = no_module_installed,
                                 .run = init_exported};
}  // namespace scankit

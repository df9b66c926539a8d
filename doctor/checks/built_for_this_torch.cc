// SPDX-License-Identifier: Apache-2.0
// How a module came to miss names of the installed torch, where the files tell: pip built it in a folder of
// its own, against the torch that it put there; or pip exchanged torch afterwards, for the sake of another
// package.
#include <algorithm>
#include <optional>

#include "doctor/base/say.h"
#include "doctor/checks/check.h"
#include "doctor/checks/view.h"

namespace scankit {
namespace {

// It tells where a fault comes from that others find: what cannot be read hides nothing here.
std::string no_module_uses_torch(const Snapshot& snapshot) {
  if (!snapshot.torch.present() || !snapshot.extensions.present())
    return say("torch or the modules could not be looked at");
  return std::ranges::none_of(selected_copies(snapshot), [](const Copy& copy) { return copy->uses_torch; })
             ? say("no module under diagnosis uses torch")
             : "";
}

// The first name that this torch should have and does not; without one a module fits its torch well enough.
std::optional<Evidence> name_that_torch_lacks(const Copy& copy) {
  for (std::size_t i = 0; i < copy->missing_symbols.size(); ++i)
    if (copy->missing_symbols[i].owner == "torch")
      return copy.at("missing_symbols", i, "name", copy->missing_symbols[i].name);
  return std::nullopt;
}

std::optional<Copy> copy_of(const Snapshot& snapshot, const ModuleTexts& texts) {
  auto copy = selected_copy(snapshot, texts.module);
  return copy && (*copy)->resolved && (*copy)->path == texts.path ? copy : std::nullopt;
}

Finding isolated(const Snapshot& snapshot, const Copy& copy, std::size_t at, const Evidence& missing) {
  const ModuleTexts& texts = snapshot.packages.value.texts[at];
  return {.cause = Cause::BuildIsolationWrongTorch,
          .subject = texts.path,
          .module = texts.module,
          .summary =
              say("{} was compiled in a folder that pip makes for one build ({}), against the torch that pip "
                  "put there, and asks the installed torch {} for what it does not have",
                  texts.path, texts.build_trace, snapshot.torch.value.version),
          .evidence = {{"/packages/value/texts/" + std::to_string(at) + "/build_trace", texts.build_trace},
                       missing},
          .fixes = module_fixes(snapshot, copy->module,
                                say("build {} again with --no-build-isolation", copy->module))};
}

Finding exchanged(const Snapshot& snapshot, const Copy& copy, std::size_t at, const Evidence& missing) {
  const Packages& packages = snapshot.packages.value;
  const ModuleTexts& texts = packages.texts[at];
  Finding finding{
      .cause = Cause::PipReplacedTorch,
      .subject = texts.path,
      .module = texts.module,
      .summary = say(
          "torch {} came with the installation of {}, after {} had been installed, which asks it for what "
          "it does not have",
          snapshot.torch.value.version, packages.torch_brought_by, texts.module),
      .evidence = {{"/packages/value/torch_brought_by", packages.torch_brought_by},
                   {"/packages/value/torch_installed", std::to_string(packages.torch_installed)},
                   {"/packages/value/texts/" + std::to_string(at) + "/installed",
                    std::to_string(texts.installed)},
                   missing},
      .fixes = module_fixes(snapshot, copy->module, say("build {} again for this torch", copy->module))};
  finding.fixes.push_back(
      Advice{say("or install the former torch again, and {} with --no-deps", packages.torch_brought_by)});
  return finding;
}

CheckResult built_for_this_torch(const Snapshot& snapshot) {
  CheckResult result;
  const Packages& packages = snapshot.packages.value;
  for (std::size_t i = 0; i < packages.texts.size(); ++i) {
    const ModuleTexts& texts = packages.texts[i];
    const auto copy = copy_of(snapshot, texts);
    const auto missing = copy ? name_that_torch_lacks(*copy) : std::nullopt;
    if (!missing) continue;
    if (!texts.build_trace.empty())
      result.findings.push_back(isolated(snapshot, *copy, i, *missing));
    else if (!packages.torch_brought_by.empty() && texts.installed != 0 &&
             texts.installed < packages.torch_installed)
      result.findings.push_back(exchanged(snapshot, *copy, i, *missing));
  }
  return result;
}

}  // namespace

extern const Check kBuiltForThisTorch{.id = "built-for-this-torch",
                                      .question = "Were the modules built for the torch that is installed?",
                                      .needs = kPackages,
                                      .settled_by_import = true,
                                      .not_applicable = no_module_uses_torch,
                                      .run = built_for_this_torch};
}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/say.h"
#include "doctor/checks/check.h"
#include "doctor/checks/view.h"

namespace scankit {
namespace {

// load_torch's word for a torch folder without its compiled module.
constexpr std::string_view kNoCompiledPart = "_C needed by ";

// Where on the path the folder lies that import takes for torch: "cwd", "pythonpath", "site", ...
std::string origin_of(const Snapshot& snapshot, const std::string& location) {
  const std::string folder = path_dirname(location);
  for (const PathEntry& entry : snapshot.python.value.sys_path)
    if (entry.path == folder) return entry.origin;
  return "";
}

Fix install(const Torch& torch) {
  if (torch.version.empty()) return InstallPackages{{"torch"}, true};
  // A local version ("+cu130") is no part of the requirement: PEP 440 lets 2.11.0 match 2.11.0+cu130.
  return InstallPackages{{"torch==" + torch.version.substr(0, torch.version.find('+'))}, true};
}

// torch's Python files alone: a source checkout or a folder of that name comes before the installed torch, or
// an installation was cut short.
Finding sources_alone(const Snapshot& snapshot, const Torch& torch) {
  const std::string origin = origin_of(snapshot, torch.location);
  Finding finding{
      .cause = Cause::TorchIncomplete,
      .subject = torch.location,
      .module = "torch",
      .summary = say("import takes torch from {}, which holds no compiled module torch/_C for this "
                     "Python",
                     torch.location)};
  if (origin == "cwd" || origin == "pythonpath" || origin.starts_with("pth:"))
    finding.fixes.push_back(
        Advice{say("start Python from another folder, or take {} off the path: it hides an "
                   "installed torch",
                   path_dirname(torch.location))});
  else
    finding.fixes.push_back(install(torch));
  return finding;
}

// torch dlopens nothing lazily here: the probe lists what the loader must find to load torch's own libraries.
CheckResult run(const Snapshot& snapshot) {
  const Torch& torch = snapshot.torch.value;
  const std::size_t n = torch.missing_libraries.size();
  if (n == 0) return {};
  Finding finding;
  if (torch.missing_libraries.front().starts_with(kNoCompiledPart)) {
    finding = sources_alone(snapshot, torch);
  } else {
    finding = {.cause = Cause::TorchIncomplete,
               .subject = torch.location,
               .module = "torch",
               .summary = say_n(n, "torch {} cannot load: {}, and the loader finds no such file",
                                "torch {} cannot load: {}, and the loader finds none of them", torch.version,
                                join(torch.missing_libraries)),
               .fixes = {install(torch)}};
  }
  for (std::size_t i = 0; i < torch.missing_libraries.size(); ++i)
    finding.evidence.push_back(
        {"/torch/value/missing_libraries/" + std::to_string(i), torch.missing_libraries[i]});
  return {{finding}, {}};
}

}  // namespace

extern const Check kTorchComplete{.id = "torch-complete",
                                  .question = "Are all libraries there that torch itself loads?",
                                  .needs = kTorch,
                                  .settled_by_import = true,
                                  .not_applicable = nullptr,
                                  .run = run};
}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <sstream>

#include "doctor/base/say.h"
#include "doctor/base/version.h"
#include "doctor/checks/check.h"
#include "doctor/checks/repairs.h"
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

// "libcusparseLt.so.0 needed by ..." -> "cusparselt"
std::string stem_of(const std::string& missing) {
  std::string stem = missing.substr(0, missing.find(".so"));
  if (stem.starts_with("lib")) stem.erase(0, 3);
  std::ranges::transform(stem, stem.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return stem;
}

// The installed wheels that are named after what is missing: pip takes them for whole, since their metadata
// is there, and torch itself has nothing of them. Empty where one of the libraries is of no such wheel.
std::vector<std::string> wheels_to_bring_again(const Torch& torch) {
  std::vector<std::string> wheels;
  for (const std::string& missing : torch.missing_libraries) {
    const auto wheel = std::ranges::find_if(torch.nvidia_wheels, [&](const NvidiaWheel& one) {
      return package_key(one.name).starts_with("nvidia-" + stem_of(missing) + "-");
    });
    if (wheel == torch.nvidia_wheels.end()) return {};
    std::string requirement = wheel->name + "==" + wheel->version;
    if (std::ranges::find(wheels, requirement) == wheels.end()) wheels.push_back(std::move(requirement));
  }
  return wheels;
}

Fix bring_libraries(const Torch& torch) {
  if (auto wheels = wheels_to_bring_again(torch); !wheels.empty())
    return InstallPackages{std::move(wheels), true};
  return install(torch);
}

// PYTHONPATH without that folder.
std::string python_path_without(const Snapshot& snapshot, const std::string& folder) {
  const auto set = snapshot.environment.find("PYTHONPATH");
  std::istringstream entries(set == snapshot.environment.end() ? "" : set->second);
  std::string rest;
  for (std::string entry; std::getline(entries, entry, ':');)
    if (path_normalize(entry) != path_normalize(folder)) rest += (rest.empty() ? "" : ":") + entry;
  return rest;
}

// Python 3.11 and newer leave the current folder off the path where PYTHONSAFEPATH is set.
Fix uncover(const Snapshot& snapshot, const std::string& folder, const std::string& origin) {
  const std::string words =
      say("start Python from another folder, or take {} off the path: it hides an installed torch", folder);
  const auto version = Version::parse(snapshot.python.value.version);
  if (origin == "pythonpath") return SetEnvironment{"PYTHONPATH", python_path_without(snapshot, folder)};
  if (origin == "cwd" && version && *version >= *Version::parse("3.11"))
    return shell_advice(words, "export PYTHONSAFEPATH=1");
  return Advice{words};
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
    finding.fixes.push_back(uncover(snapshot, path_dirname(torch.location), origin));
  else
    finding.fixes.push_back(install(torch));
  return finding;
}

// torch dlopens nothing lazily here: the probe lists what the loader must find to load torch's own libraries.
CheckResult torch_complete(const Snapshot& snapshot) {
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
               .fixes = {bring_libraries(torch)}};
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
                                  .run = torch_complete};
}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
// What a fix has built from source, written down where somebody who locks the environment later finds it: pip is told
// to keep no copy, and the variables of a build are in none of its files.
#include <map>

#include "builder/fix/execute.h"
#include "doctor/base/files.h"
#include "doctor/declared/module_file.h"
#include "doctor/probes/packages/distributions.h"

extern "C" char** environ;

namespace scankit::fix {
namespace {

// How fast a build may be is the machine's matter, and another one's memory is smaller.
bool is_about_speed(std::string_view name) {
  return name == "MAX_JOBS" || name == "NVCC_THREADS" || name == "CMAKE_BUILD_PARALLEL_LEVEL" ||
         name.ends_with("_N_WORKERS");
}

void take(std::map<std::string, std::string>& switches, std::string_view line) {
  const auto sign = line.find('=');
  if (sign == std::string_view::npos) return;
  const std::string_view name = line.substr(0, sign), value = line.substr(sign + 1);
  if (declared::is_build_switch(name) && declared::is_switch_value(value) && !is_about_speed(name))
    switches[std::string(name)] = std::string(value);
}

// The user's shell and the plan, which counts more.
std::map<std::string, std::string> switches_of(const std::vector<installer::InstallerCommand>& commands) {
  std::map<std::string, std::string> switches;
  for (char** line = environ; *line != nullptr; ++line) take(switches, *line);
  for (const installer::InstallerCommand& command : commands)
    for (const std::string& line : command.environment) take(switches, line);
  return switches;
}

}  // namespace

std::vector<BuildNote> builds_of(const std::vector<RepairStep>& steps, const Snapshot& after) {
  std::vector<BuildNote> notes;
  for (const RepairStep& step : steps) {
    const auto* packages = std::get_if<ChangePackages>(&step.what);
    if (packages == nullptr) continue;
    std::vector<std::string> names = packages->change.from_source;
    if (packages->build && !packages->before.empty()) names.push_back(packages->before.front().first);
    const auto switches = switches_of(packages->build ? packages->build->commands : packages->commands);
    for (const std::string& name : names) {
      const Distribution* installed = find_distribution(after.distributions.value, name);
      if (installed == nullptr) continue;
      const auto record = sha256_file(path_join(installed->path, "RECORD"));
      if (!record) continue;  // without it nobody can tell later whether this build is still installed
      notes.push_back({installer::required_name(name), installed->version, after.torch.value.version,
                       installer::name_of(packages->installer.kind), *record, switches});
    }
  }
  return notes;
}

}  // namespace scankit::fix

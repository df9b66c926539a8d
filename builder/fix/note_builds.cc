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

std::vector<std::string> variables_of(const std::vector<installer::InstallerCommand>& commands) {
  std::vector<std::string> variables;
  for (const installer::InstallerCommand& command : commands)
    variables.insert(variables.end(), command.environment.begin(), command.environment.end());
  return variables;
}

}  // namespace

std::optional<BuildNote> note_of_build(const Snapshot& after, const std::string& package,
                                       const std::string& installer,
                                       const std::vector<std::string>& variables) {
  const Distribution* installed = find_distribution(after.distributions.value, package);
  if (installed == nullptr) return {};
  const auto record = sha256_file(path_join(installed->path, "RECORD"));
  if (!record) return {};
  std::map<std::string, std::string> switches;
  for (char** line = environ; *line != nullptr; ++line) take(switches, *line);
  for (const std::string& line : variables) take(switches, line);
  return BuildNote{installer::required_name(package),
                   installed->version,
                   after.torch.value.version,
                   installer,
                   *record,
                   std::move(switches)};
}

std::vector<BuildNote> builds_of(const std::vector<RepairStep>& steps, const Snapshot& after) {
  std::vector<BuildNote> notes;
  for (const RepairStep& step : steps) {
    const auto* packages = std::get_if<ChangePackages>(&step.what);
    if (packages == nullptr) continue;
    std::vector<std::string> names = packages->change.from_source;
    if (packages->build && !packages->before.empty()) names.push_back(packages->before.front().first);
    const auto variables = variables_of(packages->build ? packages->build->commands : packages->commands);
    for (const std::string& name : names)
      if (auto note = note_of_build(after, name, installer::name_of(packages->installer.kind), variables))
        notes.push_back(*std::move(note));
  }
  return notes;
}

}  // namespace scankit::fix

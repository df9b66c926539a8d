// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/repairs.h"

#include <algorithm>
#include <array>

#include "doctor/base/text.h"
#include "doctor/checks/snapshot_queries.h"

namespace scankit::checks {

// The fixes of module_fixes() are either scankit's module or only advice, which `otherwise` replaces.
std::vector<Fix> module_or(const Snapshot& snapshot, const std::string& module, Fix otherwise) {
  std::vector<Fix> fixes = module_fixes(snapshot, module, "");
  if (!std::holds_alternative<InstallModule>(fixes.front())) fixes.clear();
  fixes.push_back(std::move(otherwise));
  return fixes;
}

// The line end separates the two; report/fixes.cc takes the advice apart again.
Fix shell_advice(const Message& words, const std::string& command) {
  return Advice{message("{}\n{}", words, command)};
}

std::string export_line(const std::string& name, const std::string& value) {
  return join({"export", name + "=" + shell_quoted(value)}, " ");
}

std::string edit_command(const SourceTree& tree, const SourceFact& fact, const std::string& pattern,
                         const std::string& replacement) {
  const std::string line = fact.line == 0 ? "" : std::to_string(fact.line);
  return "sed -i " + shell_quoted(line + "s/" + pattern + "/" + replacement + "/g") + " " +
         shell_quoted(path_join(tree.folder, fact.file));
}

namespace {

// Set-up scripts that download a ready wheel unless this variable is set (setup.py of mamba-ssm 2.2.4,
// causal-conv1d 1.5.0 and flash-attn 2.8.3). That wheel is what is broken here.
struct Force {
  std::string_view distribution, variable;
};
constexpr std::array kForce{Force{"mamba-ssm", "MAMBA_FORCE_BUILD"},
                            Force{"causal-conv1d", "CAUSAL_CONV1D_FORCE_BUILD"},
                            Force{"flash-attn", "FLASH_ATTENTION_FORCE_BUILD"}};

}  // namespace

std::vector<Fix> rebuild_fixes(const Snapshot& snapshot, const Copy& copy, const Message& otherwise,
                               std::vector<std::pair<std::string, std::string>> environment) {
  std::vector<Fix> fixes = module_fixes(snapshot, copy->module, otherwise);
  const Distribution* distribution = find_distribution(snapshot.distributions.value, copy->distribution);
  const bool shipped = std::holds_alternative<InstallModule>(fixes.front());
  // conda builds nothing from source, and pip in its place would leave conda's records wrong. An egg or a
  // directory without a version cannot be requested from an index.
  if (distribution && !distribution->conda_channel.empty()) return fixes;
  if (!distribution || (distribution->version.empty() && distribution->project.empty())) return fixes;
  for (const Force& force : kForce)
    if (normalized_name(distribution->name) == force.distribution)
      environment.emplace_back(force.variable, "TRUE");
  // A release that builds its module only on request would be built without it.
  for (const PackageBuild& build : snapshot.packages.value.builds)
    if (!build.opt_in.empty() && normalized_name(build.distribution) == normalized_name(distribution->name))
      environment.emplace_back(build.opt_in, "TRUE");
  RebuildPackage rebuild{distribution->name, distribution->version,
                         distribution->editable ? distribution->project : "", std::move(environment)};
  if (!shipped) fixes.clear();
  fixes.push_back(std::move(rebuild));
  return fixes;
}

std::vector<Fix> restore_fixes(const Snapshot& snapshot, const Copy& copy, const Message& otherwise) {
  const Distribution* distribution = find_distribution(snapshot.distributions.value, copy->distribution);
  // The same wheel, or conda's package, contains the file as it was.
  const bool again = distribution && (!distribution->conda_channel.empty() ||
                                      (!distribution->editable && distribution->project.ends_with(".whl")));
  if (!again || distribution->version.empty()) return rebuild_fixes(snapshot, copy, otherwise);
  std::vector<Fix> fixes = module_fixes(snapshot, copy->module, otherwise);
  if (!std::holds_alternative<InstallModule>(fixes.front())) fixes.clear();
  fixes.push_back(InstallPackages{{distribution->name + "==" + distribution->version}, true});
  return fixes;
}

}  // namespace scankit::checks

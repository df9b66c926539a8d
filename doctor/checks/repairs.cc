// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/repairs.h"

#include <algorithm>
#include <array>

#include "doctor/base/text.h"
#include "doctor/base/version.h"
#include "doctor/checks/snapshot_queries.h"
#include "doctor/model/loader_rules.h"

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

Fix first_on_library_path(const Snapshot& snapshot, const std::string& folder) {
  const auto set = snapshot.environment.find("LD_LIBRARY_PATH");
  const bool empty = set == snapshot.environment.end() || set->second.empty();
  return SetEnvironment{"LD_LIBRARY_PATH", empty ? folder : folder + ":" + set->second};
}

Fix executable_stack_from_the_start(const Snapshot& snapshot) {
  const auto set = snapshot.environment.find("GLIBC_TUNABLES");
  const bool empty = set == snapshot.environment.end() || set->second.empty();
  return SetEnvironment{"GLIBC_TUNABLES",
                        empty ? kExecutableStackTunable : set->second + ":" + kExecutableStackTunable};
}

Fix install_part_of_python(const std::string& module, const knowledge::PartOfPython& part) {
  if (part.debian.empty())
    return Advice{
        message("this Python was built without {}: install {} (as it is called in Debian and Ubuntu) and "
                "build Python again, or use another Python",
                module, part.needs)};
  return Advice{message(
      "install {} (as it is called in Debian and Ubuntu), or use another Python: {} belongs to Python "
      "itself, and no index has it",
      part.debian, module)};
}

namespace {

// Options of `pip install` and `uv pip install` that say where to, from what index and within what limits, and hold
// for whatever is installed: those with a value, and those without. Each stands between blanks.
constexpr std::string_view kPlaceOptions =
    " --python -p --index-url -i --extra-index-url --index --default-index --index-strategy --find-links -f"
    " --constraint --constraints -c --trusted-host --allow-insecure-host --proxy --cert --client-cert"
    " --keyring-provider --cache-dir --config-file ";
constexpr std::string_view kPlaceFlags =
    " --user --system --break-system-packages --no-index --offline --native-tls --no-config ";

bool is_one_of(std::string_view options, const std::string& word) {
  return options.find(" " + word + " ") != std::string_view::npos;
}

// Which of the words after `install` those are, with their values: "--python=P", "--python P", and "-fDIR".
std::vector<std::string> place_options(std::vector<std::string>::const_iterator word,
                                       std::vector<std::string>::const_iterator end) {
  std::vector<std::string> kept;
  for (; word != end; ++word) {
    const bool short_with_value =
        word->size() > 2 && !word->starts_with("--") && is_one_of(kPlaceOptions, word->substr(0, 2));
    const auto equals = word->find('=');
    const bool long_with_value =
        equals != std::string::npos && is_one_of(kPlaceOptions, word->substr(0, equals));
    if (short_with_value || long_with_value || is_one_of(kPlaceFlags, *word)) kept.push_back(*word);
    if (!is_one_of(kPlaceOptions, *word) || word + 1 == end) continue;
    kept.push_back(*word);
    kept.push_back(*++word);
  }
  return kept;
}

}  // namespace

std::string without_isolation(const std::vector<std::string>& words) {
  const auto install = std::ranges::find(words, "install");
  const bool by_pip =
      std::any_of(words.begin(), install, [](const std::string& word) {  // pip, pip3.11, no pipx
        const std::string name = path_basename(word);
        return name.starts_with("pip") && name.find_first_not_of("0123456789.", 3) == std::string::npos;
      });
  if (!by_pip || install == words.end()) return "";
  if (std::ranges::find(words, "--no-build-isolation") != words.end()) return "";
  std::vector<std::string> tools(words.begin(), install + 1), again = tools;
  const std::vector<std::string> place = place_options(install + 1, words.end());
  tools.insert(tools.end(), place.begin(), place.end());
  tools.insert(tools.end(), {"setuptools", "wheel", "packaging", "ninja"});
  again.emplace_back("--no-build-isolation");
  again.insert(again.end(), install + 1, words.end());
  return join({shell_line(tools), shell_line(again)}, " && ");
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

void put(std::vector<std::pair<std::string, std::string>>& environment, const std::string& name,
         const std::string& value) {
  const auto same = [&](const auto& each) { return each.first == name; };
  if (std::ranges::none_of(environment, same)) environment.emplace_back(name, value);
}

// What a set-up script has to be told: what the finding asks for, then the maintainer's own words, then what is known of it.
void add_switches(const Snapshot& snapshot, const Distribution& distribution, const DeclaredPackage* declared,
                  std::vector<std::pair<std::string, std::string>>& environment) {
  if (declared != nullptr)
    for (const std::string& variable : declared->variables) {
      const auto equals = variable.find('=');
      if (equals != std::string::npos)
        put(environment, variable.substr(0, equals), variable.substr(equals + 1));
    }
  const std::string name = normalized_name(distribution.name);
  for (const Force& force : kForce)
    if (name == force.distribution) put(environment, std::string(force.variable), "TRUE");
  // A release that builds its module only on request would be built without it.
  for (const PackageBuild& build : snapshot.packages.value.builds)
    if (!build.opt_in.empty() && normalized_name(build.distribution) == name)
      put(environment, build.opt_in, "TRUE");
}

const DeclaredPackage* declared_of(const Snapshot& snapshot, const Distribution& distribution) {
  const auto found = std::ranges::find_if(snapshot.declared, [&](const DeclaredPackage& package) {
    return package.problem.empty() &&
           normalized_name(package.distribution) == normalized_name(distribution.name);
  });
  return found == snapshot.declared.end() ? nullptr : &*found;
}

}  // namespace

std::vector<Fix> rebuilds_of(const Snapshot& snapshot, const Distribution& distribution,
                             std::vector<std::pair<std::string, std::string>> environment) {
  // conda builds nothing from source, and pip in its place would leave conda's records wrong. An egg or a
  // directory without a version cannot be requested from an index.
  if (!distribution.conda_channel.empty() || (distribution.version.empty() && distribution.project.empty()))
    return {};
  std::vector<Fix> fixes;
  const DeclaredPackage* declared = declared_of(snapshot, distribution);
  const auto torch = Version::parse(snapshot.torch.value.version);
  const auto least = declared != nullptr ? Version::parse(declared->least_torch) : std::nullopt;
  if (torch && least && *torch < *least)
    fixes.push_back(InstallPackages{{"torch>=" + declared->least_torch}});
  add_switches(snapshot, distribution, declared, environment);
  fixes.push_back(RebuildPackage{distribution.name, distribution.version,
                                 distribution.editable ? distribution.project : "", std::move(environment),
                                 declared != nullptr && declared->isolated});
  return fixes;
}

std::vector<Fix> rebuild_fixes(const Snapshot& snapshot, const Copy& copy, const Message& otherwise,
                               std::vector<std::pair<std::string, std::string>> environment) {
  std::vector<Fix> fixes = module_fixes(snapshot, copy->module, otherwise);
  const Distribution* distribution = find_distribution(snapshot.distributions.value, copy->distribution);
  if (distribution == nullptr) return fixes;
  std::vector<Fix> rebuilds = rebuilds_of(snapshot, *distribution, std::move(environment));
  if (rebuilds.empty()) return fixes;
  if (!std::holds_alternative<InstallModule>(fixes.front())) fixes.clear();
  fixes.insert(fixes.end(), std::make_move_iterator(rebuilds.begin()),
               std::make_move_iterator(rebuilds.end()));
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

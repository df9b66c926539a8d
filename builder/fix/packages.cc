// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "builder/fix/plan.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/version.h"
#include "doctor/knowledge/known_packages.h"
#include "doctor/probes/packages/distributions.h"

namespace scankit::fix {
namespace {

// The variables that setup.py reads: mamba-ssm's since 1.0.1, causal-conv1d's since 1.0.0. SKIP leaves the
// CUDA part out. FORCE keeps setup.py from downloading a built wheel of its project's release, which would
// have that part. KEEP is read since July 2026 (commit f577286d) in place of SKIP and asks for that part: a
// user's shell may have it. In the order in which they are installed: mamba-ssm before 1.2.0 requires the other.
constexpr std::array kModelPackages = {
    ModelPackage{"causal-conv1d", "causal_conv1d_cuda", "from causal_conv1d import causal_conv1d_fn",
                 "CAUSAL_CONV1D_SKIP_CUDA_BUILD", "CAUSAL_CONV1D_FORCE_BUILD"},
    ModelPackage{"mamba-ssm", "selective_scan_cuda", "from mamba_ssm import Mamba", "MAMBA_SKIP_CUDA_BUILD",
                 "MAMBA_FORCE_BUILD", "MAMBA_KEEP_CUDA_BUILD"}};

const Distribution* installed(const Snapshot& snapshot, const std::string& requirement) {
  return find_distribution(snapshot.distributions.value, installer::required_name(requirement));
}

Error nobody_can(const installer::Installer& installer) {
  return {Errc::Unsupported, installer.why, installer.instead};
}

// What a build without isolation needs and the environment lacks (the build-system table of these
// packages' pyproject.toml).
std::vector<std::string> missing_build_tools(const Snapshot& snapshot) {
  std::vector<std::string> missing;
  if (lacks_setuptools_for_torch(snapshot)) missing.push_back(setuptools_for_torch(snapshot));
  for (const char* tool : {"wheel", "packaging"})
    if (installed_version(snapshot, tool).empty()) missing.emplace_back(tool);
  return missing;
}

// What a dependency that is not installed yet may be, by neighbours.yaml: with transformers 5 and an old torch, or an old
// mamba-ssm, `import mamba_ssm` ends. A package that is there is the user's, and stays.
void limit_neighbours(const Snapshot& snapshot, const std::string& torch, installer::PackageChange& change) {
  std::vector<std::string> limits;
  for (const std::string& requirement : change.requirements) {
    const std::string name = installer::required_name(requirement);
    const std::string pin = requirement.substr(name.size());
    if (!pin.starts_with("==")) continue;
    for (std::string& limit : knowledge::limits_beside(name, pin.substr(2)))
      limits.push_back(std::move(limit));
  }
  for (const knowledge::NeighbourPair& pair : knowledge::neighbour_pairs())
    if (const std::string limit = knowledge::limit_for_torch(pair.package, torch); !limit.empty())
      limits.push_back(limit);
  for (std::string& limit : limits) {
    const std::string name = installer::required_name(limit);
    const auto is_named = [&](const std::string& requirement) {
      return installer::required_name(requirement) == name;
    };
    if (installed_version(snapshot, name).empty() && std::ranges::none_of(change.requirements, is_named) &&
        std::ranges::find(change.held, limit) == change.held.end())
      change.held.push_back(std::move(limit));
  }
}

// Pins torch unless the change is about torch: an installer that exchanges it for another package's sake
// breaks every compiled extension.
void hold_torch(const Snapshot& snapshot, installer::PackageChange& change) {
  const std::string version = installed_version(snapshot, "torch");
  if (version.empty() || version == "?") return;
  for (const std::string& requirement : change.requirements)
    if (installer::required_name(requirement) == "torch") return;
  change.held = {"torch==" + version};
  limit_neighbours(snapshot, version, change);
}

// A temporary directory that lives as long as the plan's step, since the commands name it.
Result<void> make_work_folder(ChangePackages& made) {
  if (made.work) return {};
  SCANKIT_TRY(TemporaryDirectory work, TemporaryDirectory::create("scankit-build"));
  made.work = std::make_shared<const TemporaryDirectory>(std::move(work));
  return {};
}

// pip builds a source directory in place, and setuptools takes objects from an earlier build in its `build`
// directory for finished, although they may be for another torch. DIST_EXTRA_CONFIG names a file that
// setuptools reads in addition to setup.cfg (from 65.6 on); ours makes it build everything again, in a
// directory of ours.
Result<void> build_apart(ChangePackages& made) {
  SCANKIT_CHECK(make_work_folder(made));
  const std::string settings = path_join(made.work->path(), "build.cfg");
  std::string text("[build]\nforce = 1\nbuild_base = ");
  text.append(path_join(made.work->path(), "build")).append("\n");
  SCANKIT_CHECK(write_file_atomically(settings, text));
  for (installer::InstallerCommand& command : made.commands)
    command.environment.push_back("DIST_EXTRA_CONFIG=" + settings);
  return {};
}

// The tools of a build go into a directory of ours that PYTHONPATH shows to that build alone, so that the
// environment's own setuptools, or its lack of one, stays as it is. pip would take what it sees there for
// installed in the environment. So pip builds and installs the package alone, and a second command without
// PYTHONPATH installs its dependencies.
Result<void> bring_build_tools(const Host& host, const std::vector<std::string>& tools, ChangePackages& made,
                               const installer::PackageChange& change) {
  SCANKIT_CHECK(make_work_folder(made));
  const std::string folder = path_join(made.work->path(), "tools");
  const std::string already = host.env("PYTHONPATH").value_or("");
  const bool two_steps =
      made.installer.kind == installer::Installer::Kind::Pip && change.dependencies && !change.reinstall;
  if (two_steps) {
    installer::PackageChange alone = change;
    alone.dependencies = false;
    made.commands = installer::change_commands(made.installer, alone);
  }
  for (installer::InstallerCommand& command : made.commands)
    command.environment.push_back("PYTHONPATH=" + folder + (already.empty() ? "" : ":" + already));
  made.commands.insert(made.commands.begin(), installer::tools_command(made.installer, tools, folder));
  if (two_steps)
    for (installer::InstallerCommand& command : installer::change_commands(
             made.installer, {.requirements = change.requirements, .held = change.held}))
      made.commands.push_back(std::move(command));
  return {};
}

// "file:///src/my%20ext", of an absolute path (RFC 8089).
std::string file_url(const std::string& path) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~/+";
  constexpr const char* kHex = "0123456789ABCDEF";
  std::string url("file://");
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (kPlain.find(c) != std::string_view::npos)
      url += c;
    else
      url += {'%', kHex[byte >> 4], kHex[byte & 15]};
  }
  return url;
}

// The requirement that installs the distribution again from where it came. For what came from a file, a
// directory or a repository no index is asked: somebody may have published something else there under the
// same name. `again`: it is only to be installed again; any other change of such a distribution is an Error.
Result<std::string> requirement_of(const Host& host, const Snapshot& snapshot, const std::string& requirement,
                                   bool again) {
  const Distribution* known = installed(snapshot, requirement);
  if (known == nullptr) return requirement;
  std::string source = probes::source_of(host, *known);
  if (source.empty()) source = known->project;  // editable, by the ways that are older than direct_url.json
  if (source.empty()) return requirement;
  if (known->editable || !again)
    return Error{Errc::Unsupported,
                 message("{} was installed from {}, so no package index is used for it", known->name, source),
                 message("change it in its project, and install it from there again")};
  if (source.starts_with('/') && !host.exists(source))
    return Error{Errc::Unsupported,
                 message("{} was installed from {}, which no longer exists; no package index is used for it",
                         known->name, source),
                 message("install it again from a copy of its source")};
  return known->name + " @ " + (source.starts_with('/') ? file_url(source) : source);
}

// The path of the user's directory or file that the requirement names; "" for any other requirement.
std::string local_source(const Host& host, const Snapshot& snapshot, const std::string& requirement) {
  const Distribution* known =
      requirement.find(" @ file://") == std::string::npos ? nullptr : installed(snapshot, requirement);
  return known == nullptr ? "" : probes::source_of(host, *known);
}

bool builds_a_folder(const Host& host, const Snapshot& snapshot, const installer::PackageChange& change) {
  return std::ranges::any_of(change.requirements, [&](const std::string& requirement) {
    return host.is_directory(local_source(host, snapshot, requirement));
  });
}

}  // namespace

const ModelPackage* model_package(const std::string& requirement) {
  const auto found = std::ranges::find(kModelPackages, installer::required_name(requirement),
                                       [](const ModelPackage& one) { return std::string(one.distribution); });
  return found == kModelPackages.end() ? nullptr : &*found;
}

std::string installed_version(const Snapshot& snapshot, const std::string& name) {
  const Distribution* known = installed(snapshot, name);
  return known == nullptr ? "" : known->version.empty() ? "?" : known->version;
}

namespace {

bool takes_packaging_from_setuptools(const Snapshot& snapshot) {
  const auto torch = Version::parse(snapshot.torch.value.version);
  return torch && *torch < *Version::parse("2.3");
}

}  // namespace

std::string setuptools_for_torch(const Snapshot& snapshot) {
  return takes_packaging_from_setuptools(snapshot) ? "setuptools<70" : "setuptools";
}

bool lacks_setuptools_for_torch(const Snapshot& snapshot) {
  const auto installed = Version::parse(installed_version(snapshot, "setuptools"));
  return !installed || (takes_packaging_from_setuptools(snapshot) && !(*installed < *Version::parse("70")));
}

Result<ChangePackages> change_packages(const Host& host, const Snapshot& snapshot,
                                       installer::PackageChange change) {
  ChangePackages made;
  for (std::string& requirement : change.requirements) {
    SCANKIT_TRY(requirement, requirement_of(host, snapshot, requirement, change.reinstall));
    // A wheel is installed and not built.
    if (local_source(host, snapshot, requirement).ends_with(".whl")) change.from_source.clear();
  }
  made.installer =
      installer::installer_of(host, snapshot, installer::required_name(change.requirements.front()));
  if (made.installer.kind == installer::Installer::Kind::None) return nobody_can(made.installer);
  std::vector<std::string> environment;
  for (const std::string& requirement : change.requirements) {
    const ModelPackage* model = model_package(requirement);
    if (model == nullptr) continue;
    change.isolated_build = false;
    change.from_source.emplace_back(model->distribution);
    made.statements.emplace_back(model->statement);
    environment.push_back(std::string(model->skip) + "=TRUE");
    environment.push_back(std::string(model->force) + "=TRUE");
    if (!model->keep.empty()) environment.push_back(std::string(model->keep) + "=FALSE");
  }
  hold_torch(snapshot, change);
  made.commands = installer::change_commands(made.installer, change);
  if (made.commands.empty())
    return Error{Errc::Unsupported, message("{} cannot do that", installer::name_of(made.installer.kind)),
                 message("use a venv, where pip can do it")};
  if (builds_a_folder(host, snapshot, change)) SCANKIT_CHECK(build_apart(made));
  if (!change.isolated_build)
    if (const auto tools = missing_build_tools(snapshot); !tools.empty())
      SCANKIT_CHECK(bring_build_tools(host, tools, made, change));
  for (installer::InstallerCommand& command : made.commands)
    command.environment.insert(command.environment.end(), environment.begin(), environment.end());
  for (const std::string& requirement : change.requirements) {
    const std::string name = installer::required_name(requirement);
    made.before.emplace_back(name, installed_version(snapshot, name));
  }
  made.change = std::move(change);
  return made;
}

// What is installed again is installed alone. A second command brings those of its dependencies that are not
// there at all: a torch without its CUDA wheels is as broken as one without its own files.
Result<ChangePackages> change_for(const Host& host, const Snapshot& snapshot, const InstallPackages& fix) {
  SCANKIT_TRY(
      ChangePackages made,
      change_packages(host, snapshot, {.requirements = fix.requirements, .reinstall = fix.reinstall}));
  if (!fix.reinstall || made.installer.kind == installer::Installer::Kind::Conda) return made;
  for (installer::InstallerCommand& more : installer::change_commands(
           made.installer, {.requirements = made.change.requirements, .held = made.change.held}))
    made.commands.push_back(std::move(more));
  return made;
}

// The wheel alone first, also where its release is installed already, and then what it depends on.
Result<ChangePackages> change_for(const Host& host, const Snapshot& snapshot, const LocalWheel& wheel) {
  const std::string name = installer::required_name(wheel.name);
  ChangePackages made;
  made.installer = installer::installer_of(host, snapshot, name);
  if (made.installer.kind == installer::Installer::Kind::None) return nobody_can(made.installer);
  made.change = {.requirements = {wheel.path}, .reinstall = true};
  if (name != "torch") hold_torch(snapshot, made.change);
  made.commands = installer::change_commands(made.installer, made.change);
  if (made.commands.empty())
    return Error{
        Errc::Unsupported,
        message("{}, and {} installs no wheel", made.installer.why, installer::name_of(made.installer.kind)),
        message("remove {} with it first, or use a venv", name)};
  for (installer::InstallerCommand& more : installer::change_commands(
           made.installer, {.requirements = made.change.requirements, .held = made.change.held}))
    made.commands.push_back(std::move(more));
  made.before = {{name, installed_version(snapshot, name)}};
  made.local = wheel.path;
  made.version = wheel.version;
  made.modules = wheel.modules;
  made.declared = wheel.declared;
  made.test = wheel.test;
  return made;
}

Result<ChangePackages> change_for(const Host& host, const Snapshot& snapshot, const LocalSources& sources) {
  ChangePackages made;
  made.installer = installer::installer_of(host, snapshot);
  if (made.installer.kind == installer::Installer::Kind::None) return nobody_can(made.installer);
  SCANKIT_CHECK(make_work_folder(made));
  WheelBuild build{sources.folder, path_join(made.work->path(), "wheels"), {}};
  made.commands = {installer::wheel_command(made.installer, build.folder, build.wheels, sources.isolated)};
  SCANKIT_CHECK(build_apart(made));
  installer::InstallerCommand command = std::move(made.commands.front());
  for (const auto& [name, value] : sources.environment) command.environment.push_back(name + "=" + value);
  if (!sources.tools.empty()) {
    const std::string tools = path_join(made.work->path(), "tools");
    const auto before = [&](const char* name) {
      const std::string value = host.env(name).value_or("");
      return value.empty() ? "" : ":" + value;
    };
    command.environment.push_back("PYTHONPATH=" + tools + before("PYTHONPATH"));
    command.environment.push_back("PATH=" + tools + "/bin" + before("PATH"));
    build.commands.push_back(installer::tools_command(made.installer, sources.tools, tools));
  }
  build.commands.push_back(std::move(command));
  made.commands.clear();
  made.change = {.requirements = {sources.folder}, .reinstall = true};
  made.local = sources.folder;
  made.declared = sources.declared;
  made.build = std::move(build);
  return made;
}

Result<ChangePackages> change_for(const Host& host, const Snapshot& snapshot, const RebuildPackage& fix,
                                  bool damaged) {
  if (!fix.project.empty())
    return Error{Errc::Unsupported,
                 message("{} is built in its own directory, {}", fix.distribution, fix.project), ""};
  const Distribution* known = installed(snapshot, fix.distribution);
  const std::string source = known == nullptr ? "" : probes::source_of(host, *known);
  if (source.ends_with(".whl") && !damaged)
    return Error{
        Errc::Unsupported,
        message("{} was installed from the wheel {}, which does not match this environment; no package "
                "index is used for it",
                known->name, source),
        message("install a wheel of it that was built for torch {}", snapshot.torch.value.version)};
  installer::PackageChange change;
  change.requirements = {fix.distribution + (fix.version.empty() ? "" : "==" + fix.version)};
  change.reinstall = true;
  change.dependencies = false;
  change.isolated_build = false;
  change.from_source = {fix.distribution};
  SCANKIT_TRY(ChangePackages made, change_packages(host, snapshot, std::move(change)));
  for (installer::InstallerCommand& command : made.commands)
    for (const auto& [name, value] : fix.environment) command.environment.push_back(name + "=" + value);
  return made;
}

}  // namespace scankit::fix

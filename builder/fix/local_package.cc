// SPDX-License-Identifier: Apache-2.0
#include "builder/fix/local_package.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>

#include "builder/fix/plan.h"
#include "builder/installer/installer.h"
#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/base/version.h"
#include "doctor/checks/check.h"
#include "doctor/preflight/checks/build_queries.h"
#include "doctor/preflight/probes/sources.h"
#include "doctor/probes/python/python.h"
#include "doctor/probes/snapshot.h"
#include "doctor/probes/target/target.h"
#include "doctor/probes/target/wheel.h"
#include "doctor/report/fixes.h"

namespace scankit::fix {
namespace {

constexpr std::size_t kBuildFileLimit = 1u << 19;

Error unusable(Message why, Message next) { return {Errc::InvalidArgument, std::move(why), std::move(next)}; }

// What is wrong, and the finding's own next step.
Error refused_for(const std::string& what, const Finding& finding, const Snapshot& snapshot) {
  Message next;
  if (!finding.fixes.empty()) {
    const std::string command = report::fix_command(finding.fixes.front(), snapshot);
    next =
        command.empty() ? Message(report::fix_sentence(finding.fixes.front(), snapshot)) : Message(command);
  }
  return {Errc::Unsupported, message("{}: {}", what, finding.summary), std::move(next)};
}

// The first error about the wheel, its files or its modules. What else is wrong with the environment is no reason to
// refuse a wheel: it may be what repairs it.
const Finding* error_of_wheel(const Report& report, const LocalWheel& wheel) {
  const auto found = std::ranges::find_if(report.findings, [&](const Finding& finding) {
    const bool of_file = finding.subject == wheel.path || finding.subject.starts_with(wheel.path + "/");
    const bool of_module =
        std::ranges::find(report.snapshot.modules, finding.module) != report.snapshot.modules.end();
    return finding.severity() == Severity::Error && (of_file || of_module);
  });
  return found == report.findings.end() ? nullptr : &*found;
}

}  // namespace

std::string import_of(const std::vector<WheelModule>& modules) {
  std::string statement("import torch");
  for (const WheelModule& one : modules) statement.append(", ").append(one.module);
  return statement;
}

std::string import_of(const declared::ModuleFile& file) {
  std::string statement("import torch");
  for (const std::string& one : declared::imports_of(file)) statement.append(", ").append(one);
  return statement;
}

Result<void> check_declared_name(const declared::ModuleFile& file, const std::string& wheel) {
  if (normalized_name(file.distribution) == normalized_name(wheel)) return {};
  return Error{Errc::Malformed,
               message("{} describes {}, and the wheel is of {}", file.file, file.distribution, wheel),
               message("correct its line \"distribution:\"")};
}

namespace {

// The path is relative to the project, whose packages are at the top of the wheel or were in "src"; or the file is beside
// the declaration.
Result<std::optional<WheelTest>> test_of_wheel(const std::string& wheel, const std::string& declaration,
                                               std::string file) {
  std::vector<std::string> names{file, path_join(path_dirname(declaration), file)};
  if (file.starts_with("src/")) names.push_back(file.substr(4));
  SCANKIT_TRY(const auto found, probes::file_of_wheel(wheel, names));
  if (!found) return std::optional<WheelTest>();
  return std::optional(WheelTest{found->name, sha256_hex(found->text)});
}

Result<void> read_declaration(LocalWheel& wheel) {
  SCANKIT_TRY(const auto member, probes::module_file_of_wheel(wheel.path));
  if (!member) return {};
  SCANKIT_TRY(declared::ModuleFile file,
              declared::parse_module_file(member->text, path_join(wheel.path, member->name)));
  SCANKIT_CHECK(check_declared_name(file, wheel.name));
  if (!file.test_file.empty()) {
    SCANKIT_TRY(wheel.test, test_of_wheel(wheel.path, member->name, file.test_file));
  }
  wheel.declared = std::move(file);
  return {};
}

}  // namespace

Result<LocalWheel> examine_wheel(const std::string& python, const std::string& file) {
  const auto host = make_real_host();
  const auto real = host->realpath(path_join(current_directory(), file));
  if (!real)
    return unusable(message("--wheel {}: {}", printable(file), real.error().message),
                    message("give a wheel, NAME.whl"));
  if (const auto foreign = probes::foreign_to_root(*host, *real))
    return Error{Errc::PermissionDenied,
                 message("{} belongs to user {}, and importing it would run that user's code as root",
                         foreign->path, foreign->uid),
                 message("run scankit as that user")};
  LocalWheel wheel{.path = *real};
  Wheel tags;
  if (host->is_directory(*real) || !probes::read_wheel_name(path_basename(*real), tags))
    return unusable(
        message("--wheel {}: its name is not that of a wheel, NAME-VERSION-PYTHON-ABI-PLATFORM.whl",
                printable(file)),
        message("give a wheel under the name that its build gave it; a directory of sources is built with "
                "--from-source"));
  wheel.name = tags.name;
  wheel.version = tags.version;
  SCANKIT_TRY(probes::NamedFiles named, probes::open_named_files(make_real_host(), {wheel.path}));
  probes::SnapshotRequest request;
  request.python = python;
  request.named = &named;
  request.ask_nvml = true;
  const Report report = checks::diagnose(probes::take_snapshot(*named.host, request));
  if (const Finding* wrong = error_of_wheel(report, wheel))
    return refused_for(say("{} does not fit this environment", wheel.path), *wrong, report.snapshot);
  for (const Extension& extension : report.snapshot.extensions.value)
    if (extension.selected && extension.has_init && extension.path.starts_with(wheel.path + "/"))
      wheel.modules.push_back({extension.module, extension.path.substr(wheel.path.size() + 1)});
  SCANKIT_CHECK(read_declaration(wheel));
  for (WheelModule& one : wheel.modules) {
    SCANKIT_TRY(one.sha256, sha256_file(path_join(named.unpacked.front().path(), one.file)));
  }
  return wheel;
}

const Finding* build_error(const Report& preflight) {
  const SourceTree& tree = preflight.snapshot.sources.value;
  const auto found = std::ranges::find_if(preflight.findings, [&](const Finding& finding) {
    return finding.severity() == Severity::Error &&
           finding.subject == path_join(tree.folder, tree.build_file);
  });
  return found == preflight.findings.end() ? nullptr : &*found;
}

namespace {

// "8.0;9.0": of each GPU here once. The list separates as torch's cpp_extension does.
std::string architectures_here(const Snapshot& snapshot) {
  std::set<std::string> archs;
  for (const Gpu& gpu : snapshot.gpus.value)
    if (!gpu.sm.empty()) archs.insert(preflight::dotted(gpu.sm));
  return join({archs.begin(), archs.end()}, ";");
}

}  // namespace

std::vector<std::pair<std::string, std::string>> build_variables(const Host& host, const Report& preflight) {
  const Snapshot& snapshot = preflight.snapshot;
  const SourceTree& tree = snapshot.sources.value;
  const BuildTools& tools = snapshot.build_tools.value;
  std::vector<std::pair<std::string, std::string>> variables;
  if (!snapshot.sources.present()) return variables;
  for (const Finding& finding : preflight.findings)
    if (finding.severity() == Severity::Error && finding.subject == path_join(tree.folder, tree.build_file))
      for (const Fix& fix : finding.fixes)
        if (const auto* set = std::get_if<SetEnvironment>(&fix); set != nullptr && !set->value.empty())
          variables.emplace_back(set->name, set->value);
  const std::string archs = architectures_here(snapshot);
  if (preflight::needs_no_cuda(snapshot).empty() && tools.arch_list.empty() && !archs.empty())
    variables.emplace_back("TORCH_CUDA_ARCH_LIST", archs);
  const std::uint64_t fit = preflight::jobs_that_fit(snapshot);
  if (tools.jobs_from != "MAX_JOBS" && fit > 0 && fit < tools.jobs)
    variables.emplace_back("MAX_JOBS", std::to_string(fit));
  if (!tree.opt_in.empty() && !tree.opted_in) variables.emplace_back(tree.opt_in, "TRUE");
  // Else its setup.py would fetch a wheel that somebody else has built, in place of building these sources.
  if (const ModelPackage* model = model_package(tree.name); model != nullptr && tree.fetches_wheel)
    variables.emplace_back(model->force, "TRUE");
  std::erase_if(variables, [&](const auto& one) { return !host.env(one.first).value_or("").empty(); });
  std::ranges::stable_sort(variables, {}, [](const auto& one) { return one.first; });
  variables.erase(std::unique(variables.begin(), variables.end(),
                              [](const auto& one, const auto& next) { return one.first == next.first; }),
                  variables.end());
  return variables;
}

void take_declared_variables(const Host& host, const declared::ModuleFile& file,
                             std::vector<std::pair<std::string, std::string>>& variables) {
  for (const auto& [name, value] : file.variables) {
    if (!host.env(name).value_or("").empty()) continue;
    const auto known = std::ranges::find(variables, name, [](const auto& one) { return one.first; });
    if (known == variables.end())
      variables.emplace_back(name, value);
    else if (name != "MAX_JOBS" || std::atoi(value.c_str()) < std::atoi(known->second.c_str()))
      known->second = value;
  }
  std::ranges::stable_sort(variables, {}, [](const auto& one) { return one.first; });
}

WithVariables::WithVariables(const std::vector<std::pair<std::string, std::string>>& variables) {
  for (const auto& [name, value] : variables) {
    const char* old = std::getenv(name.c_str());
    before_.emplace_back(name, old == nullptr ? std::nullopt : std::optional<std::string>(old));
    (void)::setenv(name.c_str(), value.c_str(), 1);
  }
}

WithVariables::~WithVariables() {
  for (const auto& [name, value] : before_)
    (void)(value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str()));
}

namespace {

Report preflight_of(const Host& host, const std::string& python, const std::string& folder) {
  probes::SnapshotRequest request;
  request.python = python;
  request.sources = folder;
  request.ask_nvml = true;
  return checks::diagnose(probes::take_snapshot(host, request));
}

// Whether the build imports torch: it builds an extension of torch, or its files say so.
bool needs_torch(const Host& host, const Snapshot& snapshot, const std::string& folder,
                 const std::vector<std::string>& requires_) {
  if (snapshot.sources.present()) return true;
  const auto setup = host.read_file(path_join(folder, "setup.py"), kBuildFileLimit);
  const auto imported = setup ? preflight::imported_names(*setup) : std::vector<std::string>();
  const auto is_torch = [](const std::string& name) { return installer::required_name(name) == "torch"; };
  return std::ranges::any_of(imported, is_torch) || std::ranges::any_of(requires_, is_torch);
}

std::vector<std::string> required_for_build(const Host& host, const std::string& folder) {
  SourceTree tree;
  if (const auto text = host.read_file(path_join(folder, "pyproject.toml"), kBuildFileLimit))
    preflight::read_pyproject(*text, tree);
  return tree.build_requires;
}

// What a build without isolation needs and the environment lacks. setuptools makes wheels by itself from 70.1 on.
std::vector<std::string> lacking(const Snapshot& snapshot, std::vector<std::string> needed) {
  const auto setuptools = Version::parse(installed_version(snapshot, "setuptools"));
  const std::string usual = setuptools_for_torch(snapshot);
  const bool lacks = lacks_setuptools_for_torch(snapshot), old = usual != "setuptools";
  if (std::ranges::find(needed, "setuptools", installer::required_name) == needed.end())
    needed.push_back(usual);
  if (old || (setuptools && *setuptools < *Version::parse("70.1"))) needed.emplace_back("wheel");
  std::vector<std::string> tools;
  for (const std::string& requirement : needed) {
    const std::string name = installer::required_name(requirement);
    const bool missing =
        name == "setuptools" ? lacks : name != "torch" && installed_version(snapshot, name).empty();
    if (missing && std::ranges::find(tools, name, installer::required_name) == tools.end())
      tools.push_back(name == "setuptools" && old ? usual : requirement);
  }
  return tools;
}

// Whether its setup.py is told to compile nothing: then nothing that the doctor says of the compilers matters.
bool leaves_out_cuda(const Host& host, const SourceTree& tree) {
  const ModelPackage* model = model_package(tree.name);
  return model != nullptr && host.env(model->skip).value_or("") == "TRUE";
}

Result<void> check_torch(const declared::ModuleFile& file, const std::string& torch) {
  const auto least = Version::parse(file.least_torch), here = Version::parse(torch);
  if (!least || !here || *here >= *least) return {};
  return Error{Errc::Unsupported,
               message("{}: its build needs torch {} or newer, and torch {} is installed", file.file,
                       file.least_torch, torch),
               message("install a newer torch, or an older release of {}", file.distribution)};
}

}  // namespace

Result<LocalSources> examine_sources(const Host& host, const std::string& python, const std::string& named) {
  const auto real = host.realpath(path_join(current_directory(), named));
  if (!real || !host.is_directory(*real))
    return unusable(message("--from-source {}: no such directory", printable(named)),
                    message("give the directory with the pyproject.toml or setup.py of the package"));
  LocalSources sources{.folder = *real};
  if (!host.exists(path_join(*real, "pyproject.toml")) && !host.exists(path_join(*real, "setup.py")))
    return unusable(
        message("--from-source {}: it contains neither pyproject.toml nor setup.py", printable(named)),
        message("give the directory of a Python package; a wheel is installed with --wheel"));
  if (const auto foreign = probes::foreign_to_root(host, *real))
    return Error{Errc::PermissionDenied,
                 message("{} belongs to user {}, and building it would run that user's code as root",
                         foreign->path, foreign->uid),
                 message("run scankit as that user")};
  SCANKIT_TRY(sources.declared, declared::read_module_file(host, sources.folder));
  Report report = preflight_of(host, python, sources.folder);
  sources.environment = build_variables(host, report);
  if (sources.declared) {
    SCANKIT_CHECK(check_torch(*sources.declared, report.snapshot.torch.value.version));
    take_declared_variables(host, *sources.declared, sources.environment);
  }
  if (build_error(report) != nullptr && !sources.environment.empty()) {
    const WithVariables set(sources.environment);
    report = preflight_of(host, python, sources.folder);
  }
  if (const Finding* wrong = build_error(report);
      wrong != nullptr && !leaves_out_cuda(host, report.snapshot.sources.value))
    return refused_for(say("{} cannot be built here", sources.folder), *wrong, report.snapshot);
  const auto needed = required_for_build(host, sources.folder);
  sources.isolated = !needs_torch(host, report.snapshot, sources.folder, needed);
  if (sources.declared && sources.declared->isolation) sources.isolated = *sources.declared->isolation;
  if (!sources.isolated) sources.tools = lacking(report.snapshot, needed);
  return sources;
}

Result<std::string> built_wheel(const std::string& folder) {
  std::vector<std::string> wheels;
  if (const auto listed = make_real_host()->list(folder))
    for (const DirEntry& entry : *listed)
      if (entry.name.ends_with(".whl")) wheels.push_back(path_join(folder, entry.name));
  if (wheels.size() == 1) return wheels.front();
  return Error{Errc::ToolFailed,
               wheels.empty() ? message("the build ended without an error and made no wheel")
                              : message("the build made {} wheels", wheels.size()),
               message("build it by hand, and give the wheel with --wheel")};
}

Result<std::string> place_of_wheel(const std::string& wheel, const std::string& folder) {
  SCANKIT_TRY(const std::string hash, sha256_file(wheel));
  return join({folder, hash.substr(0, 16), path_basename(wheel)}, "/");
}

Result<bool> keep_wheel(const std::string& wheel, const std::string& place) {
  namespace fs = std::filesystem;
  SCANKIT_TRY(const std::string hash, sha256_file(wheel));
  const auto known = sha256_file(place);
  if (known && *known == hash) return false;
  SCANKIT_CHECK(make_directories(path_dirname(place)));
  std::error_code failed;
  const std::string aside = place + ".new";
  fs::copy_file(wheel, aside, fs::copy_options::overwrite_existing, failed);
  if (!failed) fs::rename(aside, place, failed);
  if (!failed) return true;
  std::error_code ignored;
  fs::remove(aside, ignored);
  forget_wheel(place);
  return Error{Errc::Io, message("cannot keep the built wheel as {}: {}", place, failed.message()),
               message("make space there, or remove that file")};
}

void forget_wheel(const std::string& place) {
  const std::string own = path_dirname(place);
  std::error_code ignored;
  for (const std::string& one : {place, own, path_dirname(own)}) std::filesystem::remove(one, ignored);
}

}  // namespace scankit::fix

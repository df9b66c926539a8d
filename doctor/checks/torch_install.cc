// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <sstream>

#include "doctor/base/message.h"
#include "doctor/base/text.h"
#include "doctor/base/version.h"
#include "doctor/checks/check.h"
#include "doctor/checks/missing.h"
#include "doctor/checks/packages.h"
#include "doctor/checks/repairs.h"
#include "doctor/checks/snapshot_queries.h"
#include "doctor/model/snapshot.h"

namespace scankit::checks {
namespace {

// What the probe reports for a torch directory without its compiled module.
constexpr std::string_view kNoCompiledPart = "_C";

// Where on the path the directory is from which import takes torch: "cwd", "pythonpath", "site", ...
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

// The name of a library as wheels use it: "cusparselt" for "libcusparseLt.so.0".
std::string stem_of(const std::string& soname) {
  std::string stem = soname.substr(0, soname.find(".so"));
  if (stem.starts_with("lib")) stem.erase(0, 3);
  return lowered(stem);
}

// The installed wheels that are named after the missing libraries. Their metadata is there, so pip
// takes them for complete and must be told to reinstall them. Empty if one of the libraries belongs to
// no such wheel.
std::vector<std::string> wheels_to_bring_again(const Torch& torch) {
  std::vector<std::string> wheels;
  for (const TorchNeed& missing : torch.missing_libraries) {
    const auto wheel = std::ranges::find_if(torch.nvidia_wheels, [&](const NvidiaWheel& one) {
      return normalized_name(one.name).starts_with("nvidia-" + stem_of(missing.soname) + "-");
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

// PYTHONPATH without that directory.
std::string python_path_without(const Snapshot& snapshot, const std::string& folder) {
  const auto set = snapshot.environment.find("PYTHONPATH");
  std::istringstream entries(set == snapshot.environment.end() ? "" : set->second);
  std::string rest;
  for (std::string entry; std::getline(entries, entry, ':');)
    if (path_normalize(entry) != path_normalize(folder)) rest += (rest.empty() ? "" : ":") + entry;
  return rest;
}

// Python 3.11 and newer do not put the current directory on the path if PYTHONSAFEPATH is set.
Fix uncover(const Snapshot& snapshot, const std::string& folder, const std::string& origin) {
  const Message words = message(
      "start Python from another directory, or remove {} from the path: it hides an installed torch", folder);
  const auto version = Version::parse(snapshot.python.value.version);
  if (origin == "pythonpath") return SetEnvironment{"PYTHONPATH", python_path_without(snapshot, folder)};
  if (origin == "cwd" && version && *version >= *Version::parse("3.11"))
    return shell_advice(words, "export PYTHONSAFEPATH=1");
  return Advice{words};
}

// Only torch's Python files are there: a source checkout or a directory of that name comes before the
// installed torch, or an installation was interrupted.
Finding sources_alone(const Snapshot& snapshot, const Torch& torch) {
  const std::string origin = origin_of(snapshot, torch.location);
  Finding finding{.cause = Cause::TorchIncomplete,
                  .subject = torch.location,
                  .module = "torch",
                  .summary = message(
                      "import uses torch from {}, which contains no compiled module torch/_C for this Python",
                      torch.location)};
  if (origin == "cwd" || origin == "pythonpath" || origin.starts_with("pth:"))
    finding.fixes.push_back(uncover(snapshot, path_dirname(torch.location), origin));
  else
    finding.fixes.push_back(install(torch));
  return finding;
}

// Each library once, however many of torch's own need it: "libcudart.so.13, libcudnn.so.9".
std::vector<Message> libraries_in_words(const std::vector<TorchNeed>& needs) {
  std::vector<Message> names;
  for (const TorchNeed& need : needs) {
    const Message name = need.version.empty() ? Message(need.soname)
                                              : message("{} with version {}", need.soname, need.version);
    const Message whole = need.why.empty() ? name : message("{} ({})", name, need.why);
    if (std::ranges::find(names, whole) == names.end()) names.push_back(whole);
  }
  return names;
}

Message cannot_load(const Torch& torch) {
  const std::vector<Message> names = libraries_in_words(torch.missing_libraries);
  Message all;
  for (const Message& name : names) all = all.empty() ? name : message("{}, {}", all, name);
  return message_n(names.size(), "torch {} cannot load: {}, which {} needs and the loader does not find",
                   "torch {} cannot load: {}, none of which the loader finds; the first is needed by {}",
                   torch.version, all, torch.missing_libraries.front().needed_by);
}

// The probe lists what the loader must find to load torch's own libraries. Libraries that torch opens
// later with dlopen are not among them.
CheckResult torch_complete(const Snapshot& snapshot) {
  const Torch& torch = snapshot.torch.value;
  const std::size_t n = torch.missing_libraries.size();
  if (n == 0) return {};
  Finding finding;
  if (torch.missing_libraries.front().soname == kNoCompiledPart) {
    finding = sources_alone(snapshot, torch);
  } else {
    finding = {.cause = Cause::TorchIncomplete,
               .subject = torch.location,
               .module = "torch",
               .summary = cannot_load(torch),
               .fixes = {bring_libraries(torch)}};
  }
  for (std::size_t i = 0; i < torch.missing_libraries.size(); ++i)
    finding.evidence.push_back({"/torch/value/missing_libraries/" + std::to_string(i) + "/soname",
                                torch.missing_libraries[i].soname});
  return {{finding}, {}};
}

}  // namespace

extern const Check kTorchComplete{.id = "torch-complete",
                                  .question = "Are all of torch's own libraries installed?",
                                  .needs = kTorch,
                                  .confirmed_by_import = true,
                                  .not_applicable = nullptr,
                                  .run = torch_complete};

namespace {

// Whether dpkg has installed torch: Debian and Ubuntu use dist-packages for that, and /usr/local for pip.
bool of_the_distribution(const Torch& torch) {
  return torch.location.find("/dist-packages/") != std::string::npos &&
         !torch.location.starts_with("/usr/local/");
}

// Whether an index can have the version: not "1.13.0a0" or "2.9.0.dev20250801" of a distribution or of
// the user's own build.
bool is_release(const std::string& version) {
  return version.find_first_not_of("0123456789.") == std::string::npos && !version.empty();
}

// A repair that gets a CUDA build. The usual index has CUDA builds, but "+cpu" satisfies the same
// requirement, so the installer must be told to reinstall. An index of CPU builds would return
// the same file.
Fix cuda_build(const Snapshot& snapshot) {
  const std::string& version = snapshot.torch.value.version;
  const std::string plain = version.substr(0, version.find('+'));
  if (of_the_distribution(snapshot.torch.value))
    return Advice{
        message("create an environment of your own and install torch there: this torch is the distribution's "
                "package, which has no CUDA build")};
  if (snapshot.build_tools.value.cpu_index)
    return Advice{message(
        "install torch {} from an index of CUDA builds: PIP_INDEX_URL points to one of CPU builds", plain)};
  if (!is_release(plain))
    return Advice{
        message("install a released CUDA build of torch: {} is not a release in any index", version)};
  return InstallPackages{{"torch==" + plain}, true};
}

// A finding only if a module needs a CUDA library of torch: a CPU build by itself is not a fault.
CheckResult torch_has_cuda(const Snapshot& snapshot) {
  CheckResult result;
  if (!snapshot.torch.value.cuda.empty()) return result;
  for (const Copy& copy : resolved_copies(snapshot)) {
    Finding finding{.cause = Cause::CpuOnlyTorch, .subject = copy->path, .module = copy->module};
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < copy->missing_libraries.size(); ++i) {
      if (!is_torch_cuda_library(copy->missing_libraries[i].soname)) continue;
      parts.push_back(copy->missing_libraries[i].soname);
      finding.evidence.push_back(copy.at("missing_libraries", i, "soname", parts.back()));
    }
    if (parts.empty()) continue;
    const Torch& torch = snapshot.torch.value;
    if (!torch.hip.empty()) {
      finding.cause = Cause::RocmTorch;
      finding.summary =
          message("it needs {}; torch {} is a ROCm build, for AMD GPUs", join(parts), torch.version);
      finding.evidence.push_back({"/torch/value/hip", torch.hip});
    } else {
      finding.summary = message("it needs {}; torch {} is a CPU build", join(parts), torch.version);
      finding.evidence.push_back({"/torch/value/cuda", ""});
    }
    const bool for_rocm = finding.cause == Cause::RocmTorch;
    finding.fixes = {
        for_rocm && snapshot.gpus.value.empty()
            ? Fix{Advice{message("build {} for ROCm, as its documentation describes", copy->module)}}
            : cuda_build(snapshot)};
    if (const auto fixes = module_fixes(snapshot, copy->module, "");
        !for_rocm && std::holds_alternative<InstallModule>(fixes[0]))
      finding.fixes.push_back(fixes[0]);  // its CPU path works with this torch
    result.findings.push_back(finding);
  }
  return result;
}

}  // namespace

extern const Check kTorchHasCuda{.id = "torch-has-cuda",
                                 .question = "Does torch have the CUDA parts that the modules need?",
                                 .needs = kTorch | kExtensions | kClosures,
                                 .confirmed_by_import = true,
                                 .not_applicable = no_module_installed,
                                 .run = torch_has_cuda};

namespace {

// PEP 440: "2.5.0a0+e000cf0ad9.nv24.10" of a vendor's container, "2.9.0.dev20250801+cu128" of a nightly
// build, "2.6.0a0+gitc0ffee" of a checkout. "+cu130" and "+cpu" mark releases.
bool is_between_releases(const std::string& version) {
  const auto parsed = Version::parse(version);
  if (!parsed) return false;
  if (parsed->is_prerelease()) return true;
  const auto plus = version.find('+');
  const std::string local = plus == std::string::npos ? "" : version.substr(plus + 1);
  return local.starts_with("git") || local.find("nv") != std::string::npos;
}

// Other checks report a torch that cannot be read; what its version would add hides no error.
Message no_torch(const Snapshot& snapshot) {
  return snapshot.torch.present() ? "" : message("torch could not be examined");
}

CheckResult torch_is_a_release(const Snapshot& snapshot) {
  const Torch& torch = snapshot.torch.value;
  if (torch.version.empty() || !is_between_releases(torch.version)) return {};
  return {{{.cause = Cause::NgcPrereleaseTorch,
            .subject = torch.location,
            .module = "torch",
            .summary = message(
                "torch {} is a state between two releases: modules built for either release may not match "
                "it, and only its exported symbols are decisive",
                torch.version),
            .evidence = {{"/torch/value/version", torch.version}},
            .fixes = {Advice{
                message("build modules against exactly this torch, or install the scankit module")}}}},
          {},
          {}};
}

}  // namespace

extern const Check kTorchIsARelease{.id = "torch-is-a-release",
                                    .question = "Is the installed torch a release?",
                                    .needs = 0,
                                    .confirmed_by_import = false,
                                    .not_applicable = no_torch,
                                    .run = torch_is_a_release};

// torch's extensions contain no path to torch's libraries and rely on these being loaded already.
// That is healthy and worth no word as long as torch is imported first; code that imports the
// extension first fails.
namespace {

// Anything else that is missing makes the import fail after torch as well.
bool lacks_more(const Extension& file) {
  return !file.missing_symbols.empty() || !file.missing_libraries.empty() || !file.unmet_versions.empty();
}

const Observation* alone(const Snapshot& snapshot, const std::string& module) {
  const auto& all = snapshot.observations.value;
  const auto found = std::ranges::find_if(
      all, [&](const Observation& seen) { return seen.module == module && seen.variant == "bare"; });
  return found == all.end() ? nullptr : &*found;
}

// A module that does not load after torch either has another fault, which the order does not repair.
bool loads_only_after_torch(const Snapshot& snapshot, const Extension& file) {
  if (file.needs_torch_first.empty() || lacks_more(file)) return false;
  const Observation *bare = alone(snapshot, file.module), *after = deciding_import(snapshot, file.module);
  if (bare != nullptr && bare->outcome == "ok") return false;
  return after == nullptr || after == bare || after->outcome == "ok";
}

// Whether the loader's message is about one of the libraries that torch would have loaded.
bool fails_for_want_of_torch(const Observation& seen, const Extension& file) {
  return seen.outcome == "error" &&
         std::ranges::any_of(file.needs_torch_first, [&](const std::string& soname) {
           return seen.message.english().find(soname + ": ") != std::string::npos;
         });
}

Finding import_order_finding(const Copy& copy, Circumstance circumstance, Message summary) {
  Finding finding{.cause = Cause::TorchNotImportedFirst,
                  .subject = copy->path,
                  .module = copy->module,
                  .summary = std::move(summary),
                  .evidence = {},
                  .fixes = {ImportTorchFirst{copy->module}},
                  .circumstances = {circumstance}};
  for (std::size_t i = 0; i < copy->needs_torch_first.size(); ++i)
    finding.evidence.push_back(copy.at("needs_torch_first", i, "", copy->needs_torch_first[i]));
  return finding;
}

// Observed: `import PACKAGE` in a fresh interpreter reaches the module before torch.
void seen_to_fail(const Snapshot& snapshot, const Copy& copy, std::vector<Finding>& findings) {
  for (const PackageFound& package : snapshot.packages.value.found) {
    const Observation* seen = seen_package(snapshot, package.name);
    if (seen == nullptr || !fails_for_want_of_torch(*seen, *copy)) continue;
    Finding finding = import_order_finding(
        copy, Circumstance::ImportedBeforeTorch,
        message("`import {}` fails: it reaches {} before anything has imported torch, which provides {}",
                package.name, copy->module, join(copy->needs_torch_first)));
    const auto at = static_cast<std::size_t>(seen - snapshot.observations.value.data());
    finding.evidence.push_back(
        {"/observations/value/" + std::to_string(at) + "/message", english(seen->message)});
    findings.push_back(std::move(finding));
  }
}

// Read: a file imports the module, and nothing before that line can have imported torch.
void read_to_fail(const Snapshot& snapshot, const Copy& copy, std::vector<Finding>& findings) {
  for (const std::size_t i : needing_importers(snapshot, copy->module)) {
    const Importer& importer = snapshot.importers.value[i];
    if (!importer.before_torch || importer.in_function) continue;
    const Observation* package = seen_package(snapshot, importer.package);
    if (package != nullptr) continue;  // what was seen says more
    const bool nearby = is_only_nearby(snapshot, importer);
    Finding finding = import_order_finding(
        copy, nearby ? Circumstance::OnlyNearbyFilesNeedIt : Circumstance::ImportedBeforeTorch,
        message("{}:{} imports {} before anything has imported torch, which provides {}", importer.file,
                importer.line, copy->module, join(copy->needs_torch_first)));
    finding.evidence.push_back({"/importers/value/" + std::to_string(i) + "/file", importer.file});
    findings.push_back(std::move(finding));
  }
}

CheckResult torch_imported_first(const Snapshot& snapshot) {
  CheckResult result;
  for (const Copy& copy : resolved_copies(snapshot)) {
    if (!loads_only_after_torch(snapshot, *copy)) continue;
    seen_to_fail(snapshot, copy, result.findings);
    read_to_fail(snapshot, copy, result.findings);
  }
  return result;
}

}  // namespace

extern const Check kTorchImportedFirst{.id = "torch-imported-first",
                                       .question = "Is torch imported before the modules that need it?",
                                       .needs = kTorch | kExtensions | kClosures,
                                       .confirmed_by_import = false,
                                       .not_applicable = no_module_installed,
                                       .run = torch_imported_first};

}  // namespace scankit::checks

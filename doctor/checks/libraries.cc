// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <set>

#include "doctor/base/message.h"
#include "doctor/base/text.h"
#include "doctor/checks/check.h"
#include "doctor/checks/missing.h"
#include "doctor/checks/repairs.h"
#include "doctor/checks/snapshot_queries.h"
#include "doctor/knowledge/known_packages.h"

namespace scankit::checks {
namespace {

// libc, libm, libpthread, librt and libdl all have GLIBC_ version nodes. The loader refuses a file if a
// node that it needs is not defined.
CheckResult glibc_new_enough(const Snapshot& snapshot) {
  return {unmet_versions(snapshot, Cause::GlibcTooOld, {"GLIBC_"},
                         message("build the module on this system, or use one built for an older glibc")),
          {}};
}

}  // namespace

extern const Check kGlibcNewEnough{.id = "glibc-new-enough",
                                   .question = "Is this system's glibc new enough for each module?",
                                   .needs = kExtensions | kClosures,
                                   .confirmed_by_import = true,
                                   .not_applicable = no_module_installed,
                                   .run = glibc_new_enough};

namespace {

// Which libstdc++ the process loads is the resolver's answer: conda's, the system's, or one
// from LD_LIBRARY_PATH.
CheckResult libstdcxx_new_enough(const Snapshot& snapshot) {
  return {
      unmet_versions(
          snapshot, Cause::LibstdcxxTooOld,
          {kCompilerRuntimeVersions.begin(), kCompilerRuntimeVersions.end()},
          message(
              "install a newer libstdc++ where this Python finds it, or rebuild with the older compiler")),
      {}};
}

}  // namespace

extern const Check kLibstdcxxNewEnough{.id = "libstdcxx-new-enough",
                                       .question = "Is the loaded libstdc++ new enough for each module?",
                                       .needs = kExtensions | kClosures,
                                       .confirmed_by_import = true,
                                       .not_applicable = no_module_installed,
                                       .run = libstdcxx_new_enough};

namespace {

Message no_cuda_libraries(const Snapshot& snapshot) {
  const Torch& torch = snapshot.torch.value;
  if (!torch.nvidia_wheels.empty()) return "";
  if (torch.cuda.empty()) return message("this torch is a CPU build");
  return torch.missing_libraries.empty() ? "" : message("libraries that torch needs are missing");
}

// kLibraryPathHarmless reports these.
bool by_variable(const BindingMismatch& mismatch) {
  return mismatch.found_by.starts_with("LD_LIBRARY_PATH ") && !mismatch.without_library_path.empty();
}

// A C or C++ library of another release is a matter of the version checks above.
bool system_library(const BindingMismatch& mismatch) {
  return mismatch.soname.starts_with("libstdc++") || mismatch.soname.starts_with("libc.so") ||
         mismatch.soname.starts_with("libm.so") || mismatch.soname.starts_with("libgcc_s");
}

// A library inside torch's directory is not of a CUDA wheel: files of two torch releases were mixed.
bool of_torch(const Torch& torch, const BindingMismatch& mismatch) {
  return mismatch.library.starts_with(torch.location + "/");
}

// Whether one of the mismatched libraries comes from the pinned wheel.
bool named_by(const std::vector<const BindingMismatch*>& mismatches, const CudaPin& pin) {
  return std::ranges::any_of(mismatches, [&](const BindingMismatch* m) {
    return m->wheel.substr(0, m->wheel.find("==")) == pin.name;
  });
}

// Reinstalls the pinned wheels of the mismatched libraries, even if a pin is met although the file is
// another one: two wheels may write the same path. If the files belong to no wheel, it reinstalls all
// wheels whose pin is not met, else torch with everything that it pins.
InstallPackages wheel_repair(const Torch& torch, const std::vector<const BindingMismatch*>& mismatches) {
  InstallPackages fix{{}, true};
  for (const CudaPin& pin : torch.cuda_pins)
    if (named_by(mismatches, pin)) fix.requirements.push_back(pin.requirement);
  if (!fix.requirements.empty()) return fix;
  for (const CudaPin& pin : torch.cuda_pins)
    if (!pin.met) fix.requirements.push_back(pin.requirement);
  if (fix.requirements.empty())
    fix.requirements.push_back("torch==" + torch.version.substr(0, torch.version.find('+')));
  return fix;
}

Message wheel_mismatch_summary(const Torch& torch, const BindingMismatch& mismatch) {
  const std::string needed_by = path_basename(mismatch.needed_by);
  const std::string what = mismatch.name.empty() ? mismatch.version : mismatch.name;
  const auto pin = std::ranges::find_if(torch.cuda_pins, [&](const CudaPin& p) {
    return p.name == mismatch.wheel.substr(0, mismatch.wheel.find("=="));
  });
  if (mismatch.wheel.empty())
    return message(
        "{} needs {} of {}; the loader uses {}, which is from another release and does not have it",
        needed_by, what, mismatch.soname, mismatch.library);
  if (pin == torch.cuda_pins.end())
    return message(
        "{} needs {} of {}; the installed {} does not have it, and torch {} does not require that package",
        needed_by, what, mismatch.soname, mismatch.wheel, torch.version);
  return message("{} needs {} of {}; the installed {} does not have it, and torch {} requires {}", needed_by,
                 what, mismatch.soname, mismatch.wheel, torch.version, pin->requirement);
}

// A version that differs is not a fault. Only a name or a version node that is missing is one.
CheckResult cuda_wheels_match(const Snapshot& snapshot) {
  const Torch& torch = snapshot.torch.value;
  std::vector<const BindingMismatch*> wrong;
  CheckResult result;
  Finding finding{.cause = Cause::CudaWheelsMismatch, .module = "torch"};
  for (std::size_t i = 0; i < torch.mismatches.size(); ++i) {
    const BindingMismatch& mismatch = torch.mismatches[i];
    if (by_variable(mismatch) || system_library(mismatch) || of_torch(torch, mismatch)) continue;
    wrong.push_back(&mismatch);
    const std::string at = "/torch/value/mismatches/" + std::to_string(i);
    finding.evidence.push_back({at + "/library", mismatch.library});
    finding.evidence.push_back(mismatch.name.empty() ? Evidence{at + "/version", mismatch.version}
                                                     : Evidence{at + "/name", mismatch.name});
  }
  if (wrong.empty()) return result;
  for (std::size_t i = 0; i < torch.cuda_pins.size(); ++i)
    if (named_by(wrong, torch.cuda_pins[i]))
      finding.evidence.push_back(
          {"/torch/value/cuda_pins/" + std::to_string(i) + "/requirement", torch.cuda_pins[i].requirement});
  finding.subject = wrong.front()->library;
  finding.summary = wheel_mismatch_summary(torch, *wrong.front());
  finding.fixes.push_back(wheel_repair(torch, wrong));
  result.findings.push_back(std::move(finding));
  return result;
}

}  // namespace

extern const Check kCudaWheelsMatch{
    .id = "cuda-wheels-match",
    .question = "Do the installed CUDA libraries provide every symbol torch needs?",
    .needs = kTorch,
    .confirmed_by_import = true,
    .not_applicable = no_cuda_libraries,
    .run = cuda_wheels_match};

namespace {

// The libraries of that name that are here help the reader to see what is wrong.
Message sentence(const Snapshot& snapshot, const MissingLibrary& library) {
  const Torch& torch = snapshot.torch.value;
  return clauses_of({message("it needs {}, which the loader does not find", library.soname),
                     torch.cuda.empty() ? "" : message("torch {} uses CUDA {}", torch.version, torch.cuda),
                     library.same_library_other_version.empty()
                         ? ""
                         : message("found instead: {}", join(library.same_library_other_version)),
                     library.found_elsewhere.empty()
                         ? ""
                         : message("a file with that name is where the loader does not search: {}",
                                   library.found_elsewhere.front())});
}

// Putting a toolkit of that major version on LD_LIBRARY_PATH is not offered: it would hide this fault and
// break torch's own CUDA calls.
CheckResult cuda_runtime_found(const Snapshot& snapshot) {
  CheckResult result;
  for (const Copy& copy : resolved_copies(snapshot)) {
    Finding finding{.cause = Cause::MissingCudart, .subject = copy->path, .module = copy->module};
    for (std::size_t i = 0; i < copy->missing_libraries.size(); ++i) {
      const MissingLibrary& library = copy->missing_libraries[i];
      if (!is_cuda_library(library.soname) || torch_lost(snapshot, library.soname)) continue;
      const Message text = sentence(snapshot, library);
      finding.summary = finding.summary.empty() ? text : message("{}. And {}", finding.summary, text);
      finding.evidence.push_back(copy.at("missing_libraries", i, "soname", library.soname));
      finding.evidence.push_back(copy.at("missing_libraries", i, "needed_by", library.needed_by));
    }
    if (finding.evidence.empty()) continue;
    if (snapshot.torch.present())
      finding.evidence.push_back({"/torch/value/cuda", snapshot.torch.value.cuda});
    finding.fixes = rebuild_fixes(snapshot, copy,
                                  message("use a build of {} for torch's CUDA major version", copy->module));
    result.findings.push_back(finding);
  }
  return result;
}

}  // namespace

extern const Check kCudaRuntimeFound{
    .id = "cuda-runtime-found",
    .question = "Does the loader find every CUDA library that the modules need?",
    .needs = kExtensions | kClosures,
    .confirmed_by_import = true,
    .not_applicable = no_module_installed,
    .run = cuda_runtime_found};

namespace {

CheckResult driver_library_found(const Snapshot& snapshot) {
  CheckResult result;
  for (const Copy& copy : resolved_copies(snapshot)) {
    for (std::size_t i = 0; i < copy->missing_libraries.size(); ++i) {
      const MissingLibrary& library = copy->missing_libraries[i];
      if (!is_driver_library(library.soname)) continue;
      result.findings.push_back(
          {.cause = Cause::NoDriverLibcuda,
           .subject = copy->path,
           .module = copy->module,
           .summary =
               message("{} needs {}, which is part of the NVIDIA driver and was not found on this system",
                       path_basename(library.needed_by), library.soname),
           .evidence = {copy.at("missing_libraries", i, "soname", library.soname)},
           .fixes = module_fixes(snapshot, copy->module,
                                 message("start the container with its GPUs, or install the driver"))});
    }
  }
  return result;
}

}  // namespace

extern const Check kDriverLibraryFound{
    .id = "driver-library-found",
    .question = "Is the driver's libcuda installed if a module is linked to it?",
    .needs = kExtensions | kClosures,
    .confirmed_by_import = true,
    .not_applicable = no_module_installed,
    .run = driver_library_found};

namespace {

// Libraries of known classes have checks of their own; this one reports all others.
bool belongs_to_another_check(const std::string& soname) {
  return is_torch_library(soname) || is_cuda_library(soname) || is_driver_library(soname) ||
         is_library_of_another_python(soname);
}

constexpr std::array<std::string_view, 5> kAptSystems{"debian", "ubuntu", "linuxmint", "pop", "raspbian"};
constexpr std::array<std::string_view, 7> kDnfSystems{"fedora",    "rhel", "centos", "rocky",
                                                      "almalinux", "ol",   "amzn"};

// The packages that contain the libraries, in the terms of this distribution. dnf and zypper take the name of a library
// itself, as RPM notes it for each file; a stranger may have chosen it. Images of containers come without apt's lists.
Fix install_libraries(const Snapshot& snapshot, const std::vector<std::string>& sonames) {
  std::vector<std::string> debian, rpm, without_row;
  for (const std::string& soname : sonames) {
    const auto package = knowledge::debian_package_of(soname);
    if (!package)
      without_row.push_back(soname);
    else if (std::ranges::find(debian, *package) == debian.end())
      debian.push_back(*package);
    rpm.push_back(shell_quoted(soname + "()(64bit)"));
  }
  const std::string& id = snapshot.os.value.id;
  if (std::ranges::find(kDnfSystems, id) != kDnfSystems.end())
    return Advice{message("as root: `dnf install {}`", join(rpm, " "))};
  if (id.starts_with("opensuse") || id.starts_with("sle"))
    return Advice{message("as root: `zypper install {}`", join(rpm, " "))};
  if (!without_row.empty() || debian.empty())
    return Advice{
        message("install the package that contains {}, or add the directory of the file to "
                "LD_LIBRARY_PATH",
                join(sonames))};
  if (std::ranges::find(kAptSystems, id) != kAptSystems.end())
    return Advice{message("as root: `apt-get update && apt-get install {}`", join(debian, " "))};
  return Advice{message("install {}, in Debian and Ubuntu the package {}", join(sonames), join(debian))};
}

// A folder that has the file already helps only where one has it for all of them.
std::vector<Fix> library_repairs(const Snapshot& snapshot,
                                 const std::vector<const MissingLibrary*>& missing) {
  std::vector<std::string> sonames;
  std::set<std::string> folders;
  for (const MissingLibrary* library : missing) {
    sonames.push_back(library->soname);
    folders.insert(library->found_elsewhere.empty() ? "" : path_dirname(library->found_elsewhere.front()));
  }
  std::vector<Fix> fixes;
  if (folders.size() == 1 && !folders.begin()->empty())
    fixes.push_back(first_on_library_path(snapshot, *folders.begin()));
  fixes.push_back(install_libraries(snapshot, sonames));
  return fixes;
}

// One finding a module, for all that it lacks.
void add_libraries(const Snapshot& snapshot, const Copy& copy, CheckResult& result) {
  Finding finding{.cause = Cause::SystemLibraryMissing, .subject = copy->path, .module = copy->module};
  std::vector<const MissingLibrary*> missing;
  for (std::size_t i = 0; i < copy->missing_libraries.size(); ++i) {
    const MissingLibrary& library = copy->missing_libraries[i];
    if (belongs_to_another_check(library.soname) || torch_lost(snapshot, library.soname)) continue;
    missing.push_back(&library);
    finding.evidence.push_back(copy.at("missing_libraries", i, "soname", library.soname));
    finding.evidence.push_back(copy.at("missing_libraries", i, "needed_by", library.needed_by));
    const Message text =
        clauses_of({message("{} needs {}, which the loader does not find", path_basename(library.needed_by),
                            library.soname),
                    library.found_elsewhere.empty()
                        ? ""
                        : message("it does not search {}", library.found_elsewhere.front())});
    finding.summary = finding.summary.empty() ? text : message("{}. And {}", finding.summary, text);
  }
  if (missing.empty()) return;
  finding.fixes = library_repairs(snapshot, missing);
  result.findings.push_back(std::move(finding));
}

void add_versions(const Copy& copy, CheckResult& result) {
  for (const UnmetVersion& unmet : copy->unmet_versions) {
    const std::string& version = unmet.version;
    if (version.starts_with("GLIBC_") || is_compiler_runtime_version(version)) continue;
    result.unknown.push_back(
        message("{} needs version {} of {}, which does not define it: another build of that library",
                unmet.needed_by, version, unmet.library));
  }
}

void add_cuda_names(const Copy& copy, CheckResult& result) {
  for (const MissingLibrary& library : copy->missing_libraries)
    // The names come from a library that is missing, which is reported already.
    if (is_cuda_library(library.soname) || is_driver_library(library.soname)) return;  // the names are theirs
  const auto names = symbol_evidence(copy, [](const MissingSymbol& s) { return s.owner == "cuda"; });
  if (const std::size_t n = names.size(); n > 0)
    result.unknown.push_back(
        message_n(n,
                  "{} needs {} CUDA symbol that none of its libraries exports, such as {}: an older CUDA "
                  "library, or one it was not linked to",
                  "{} needs {} CUDA symbols that none of its libraries exports, such as {}: an older CUDA "
                  "library, or one it was not linked to",
                  copy->path, n, names.front().value));
}

CheckResult libraries_found(const Snapshot& snapshot) {
  CheckResult result;
  for (const Copy& copy : resolved_copies(snapshot)) {
    add_libraries(snapshot, copy, result);
    add_versions(copy, result);
    add_cuda_names(copy, result);
    const bool wanted =
        was_asked_for(snapshot, copy->module) || !needing_importers(snapshot, copy->module).empty();
    if (snapshot.torch.state == ProbeState::Absent && copy->uses_torch && wanted)
      result.unknown.push_back(message("{} needs torch, which is not installed for this Python", copy->path));
  }
  return result;
}

}  // namespace

extern const Check kLibrariesFound{
    .id = "libraries-found",
    .question = "Does the loader find every other library that the modules need?",
    .needs = kExtensions | kClosures,
    .confirmed_by_import = true,
    .not_applicable = no_module_installed,
    .run = libraries_found};

}  // namespace scankit::checks

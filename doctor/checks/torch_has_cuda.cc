// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/say.h"
#include "doctor/checks/check.h"
#include "doctor/checks/missing.h"
#include "doctor/checks/view.h"

namespace scankit {
namespace {

// dist-packages is where Debian and Ubuntu put what dpkg installed.
bool of_the_distribution(const Torch& torch) {
  return torch.location.find("/dist-packages/") != std::string::npos &&
         !torch.location.starts_with("/usr/local/");
}

// An index has releases: no "1.13.0a0" or "2.9.0.dev20250801" of a distribution or of the user's own build.
bool is_release(const std::string& version) {
  return version.find_first_not_of("0123456789.") == std::string::npos && !version.empty();
}

// The usual index holds the CUDA builds; "+cpu" satisfies the same requirement, so the installer must be told
// to do it again. An index of CPU builds would bring the same file.
Fix cuda_build(const Snapshot& snapshot) {
  const std::string& version = snapshot.torch.value.version;
  const std::string plain = version.substr(0, version.find('+'));
  if (of_the_distribution(snapshot.torch.value))
    return Advice{
        say("make an environment of your own and install torch there: this torch is the "
            "distribution's package, which has no CUDA build")};
  if (snapshot.build_tools.value.cpu_index)
    return Advice{
        say("install torch {} from an index of CUDA builds: PIP_INDEX_URL names one of CPU builds", plain)};
  if (!is_release(plain))
    return Advice{
        say("install a released CUDA build of torch: {} is not a release that an index has", version)};
  return InstallPackages{{"torch==" + plain}, true};
}

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
    finding.summary = say("it needs {}; torch {} is a CPU build", join(parts), snapshot.torch.value.version);
    finding.evidence.push_back({"/torch/value/cuda", ""});
    finding.fixes = {cuda_build(snapshot)};
    if (const auto fixes = module_fixes(snapshot, copy->module, "");
        std::holds_alternative<InstallModule>(fixes[0]))
      finding.fixes.push_back(fixes[0]);  // its CPU path works with this torch
    result.findings.push_back(finding);
  }
  return result;
}

}  // namespace

extern const Check kTorchHasCuda{.id = "torch-has-cuda",
                                 .question = "Does torch have the CUDA parts that the modules need?",
                                 .needs = kTorch | kExtensions | kClosures,
                                 .settled_by_import = true,
                                 .not_applicable = no_module_installed,
                                 .run = torch_has_cuda};
}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/message.h"
#include "doctor/base/text.h"
#include "doctor/checks/check.h"
#include "doctor/checks/gpu_queries.h"
#include "doctor/checks/repairs.h"
#include "doctor/knowledge/cuda_support.h"

namespace scankit::checks {
namespace {

Message driver_age_not_applicable(const Snapshot& snapshot) {
  if (snapshot.gpus.state == ProbeState::Absent) return message("GPUs: {}", why_missing(snapshot.gpus));
  if (snapshot.torch.state == ProbeState::Absent) return message("torch: {}", why_missing(snapshot.torch));
  if (snapshot.torch.present() && snapshot.torch.value.cuda.empty())
    return message("torch is not a CUDA build");
  if (snapshot.driver.state == ProbeState::Absent) return message("driver: {}", why_missing(snapshot.driver));
  return "";
}

std::string driver_version_text(const Version& version) {
  std::string text;
  for (std::size_t i = 0; i < version.release.size(); ++i) {
    const std::string part = std::to_string(version.release[i]);
    // NVIDIA writes the third number with two digits: 580.65.06.
    text += (i == 0 ? "" : ".") + std::string(i == 2 && part.size() < 2 ? "0" : "") + part;
  }
  return text;
}

// What a user without root can do. Every driver for a CUDA major version runs every torch for that major
// version ("minor version compatibility"). Which index has those builds is left to the user.
Message without_root(const Snapshot& snapshot, const Version& cuda) {
  const std::string& torch = snapshot.torch.value.version;
  return message(
      "or, without root: install a build of torch {} (or an older release) for CUDA {} (cu{}...) from "
      "PyTorch's wheel index for that CUDA",
      torch.substr(0, torch.find('+')), cuda.part(0), cuda.part(0));
}

// A forward compatibility libcuda that is installed but not loaded is offered through LD_LIBRARY_PATH.
std::vector<Fix> fixes_for_driver(const Snapshot& snapshot, const Version& minimum) {
  const Driver& driver = snapshot.driver.value;
  std::vector<Fix> fixes = {
      Advice{message("update the NVIDIA driver to {} or newer", driver_version_text(minimum))}};
  if (const auto compat = Version::parse(driver.compat_version); compat && *compat >= minimum)
    fixes.push_back(first_on_library_path(snapshot, path_dirname(driver.compat)));
  if (const auto cuda = supported_cuda(snapshot)) fixes.push_back(Advice{without_root(snapshot, cuda->cuda)});
  return fixes;
}

// The GPU that the loaded forward compatibility library does not support, or nullptr. Those libraries
// support data-centre GPUs; a GeForce reports error 804, "forward compatibility was attempted on non
// supported HW" (CUDA Compatibility, "Forward Compatibility").
const SeenGpu* refused_by_compat(const Snapshot& snapshot, const std::vector<SeenGpu>& gpus) {
  if (snapshot.driver.value.libcuda_kind != "compat") return nullptr;
  for (const SeenGpu& gpu : gpus)
    if (gpu.visibility == Visibility::Visible && gpu.gpu->name.find("GeForce") != std::string::npos)
      return &gpu;
  return nullptr;
}

Finding too_old(const Snapshot& snapshot, const Version& minimum, const Message& which,
                const Evidence& evidence) {
  const auto cuda = supported_cuda(snapshot);
  const Torch& torch = snapshot.torch.value;
  return {.cause = Cause::DriverTooOld,
          .subject = fmt::format("NVIDIA driver {}", english(which)),
          .module = "torch",
          .summary = cuda ? message("torch {} is built with CUDA {}, which needs driver {}; the installed {} "
                                    "supports CUDA up to {}",
                                    torch.version, torch.cuda, driver_version_text(minimum), which,
                                    cuda->cuda.major_minor())
                          : message("torch {} is built with CUDA {}, which needs driver {} (installed: {})",
                                    torch.version, torch.cuda, driver_version_text(minimum), which),
          .evidence = {{"/torch/value/cuda", snapshot.torch.value.cuda}, evidence},
          .fixes = fixes_for_driver(snapshot, minimum)};
}

// Declares no needed facts, because any of them may be absent without making the question void; it looks
// at each itself.
CheckResult driver_new_enough(const Snapshot& snapshot) {
  CheckResult result;
  const Driver& driver = snapshot.driver.value;
  const auto unknown = [&](Message why) {
    result.unknown.push_back(std::move(why));
    return result;
  };
  if (!snapshot.driver.present()) return unknown(message("driver: {}", why_missing(snapshot.driver)));
  if (!snapshot.torch.present()) return unknown(message("torch: {}", why_missing(snapshot.torch)));
  const auto built = Version::parse(snapshot.torch.value.cuda);
  const auto minimum = built ? knowledge::minimum_driver(*built) : std::nullopt;
  const auto cuda = supported_cuda(snapshot);
  // A driver for a newer major version runs everything older, whatever the table says about
  // minimum versions.
  if (cuda && built && cuda->cuda.part(0) > built->part(0)) return result;
  if (!built || !minimum)
    return unknown(message("which driver CUDA {} needs is not in the table", snapshot.torch.value.cuda));
  const auto user = user_driver(snapshot);
  if (!user && !cuda) return unknown(message("the version of the driver is not known: {}", driver.source));

  const std::vector<SeenGpu> gpus = seen_gpus(snapshot);
  const bool by_major = !user || snapshot.os.value.wsl;  // Windows numbers its drivers in another way
  const bool old = by_major ? cuda && cuda->cuda.part(0) < built->part(0) : *user < *minimum;
  if (old) {
    const bool library = user && *user == Version::parse(driver.libcuda_version);
    const Message which = library                  ? driver.libcuda_version
                          : driver.version.empty() ? message("one for CUDA {}", driver.cuda_version)
                                                   : driver.version;
    const Evidence evidence = library ? Evidence{"/driver/value/libcuda_version", driver.libcuda_version}
                              : user  ? Evidence{"/driver/value/version", driver.version}
                                      : cuda->evidence;
    result.findings.push_back(too_old(snapshot, *minimum, which, evidence));
  } else if (const SeenGpu* gpu = refused_by_compat(snapshot, gpus);
             gpu != nullptr && kernel_driver(snapshot) && *kernel_driver(snapshot) < *minimum) {
    Finding finding = too_old(snapshot, *minimum, driver.version, {"/driver/value/version", driver.version});
    finding.summary =
        clauses_of({finding.summary, message("the forward compatibility library {} does not support "
                                             "{}",
                                             driver.libcuda, gpu->name())});
    // Only the update helps; the other fixes rely on forward compatibility.
    finding.fixes.erase(finding.fixes.begin() + 1, finding.fixes.end());
    result.findings.push_back(finding);
  }
  return result;
}

}  // namespace

extern const Check kDriverNewEnough{.id = "driver-new-enough",
                                    .question = "Is the NVIDIA driver new enough for torch's CUDA?",
                                    .needs = 0,
                                    .confirmed_by_import = false,
                                    .not_applicable = driver_age_not_applicable,
                                    .run = driver_new_enough};

namespace {

// A described driver is a single number, so there is nothing to compare.
Message driver_parts_not_applicable(const Snapshot& snapshot) {
  if (const Message why = no_use_of_gpus(snapshot); !why.empty()) return why;
  const Driver& driver = snapshot.driver.value;
  if (snapshot.driver.state == ProbeState::Absent) return message("driver: {}", why_missing(snapshot.driver));
  if (snapshot.driver.present() && !kernel_driver(snapshot))
    return message("no kernel module of the driver is visible");
  if (snapshot.driver.present() && driver.libcuda_version.empty() && driver.libnvidia_ml_version.empty() &&
      driver.nvml_error.empty())
    return message("no library of the driver has a version in its name");
  return "";
}

Finding driver_mismatch(const Snapshot& snapshot, const std::string& library, const std::string& version,
                        const std::string& field) {
  const Driver& driver = snapshot.driver.value;
  return {.cause = Cause::NvmlMismatch,
          .subject = library,
          .module = "torch",
          .summary = message("{} is from driver {}, but the running kernel module is {} ({})", library,
                             version, driver.version, driver.source),
          .evidence = {{"/driver/value/" + field, version}, {"/driver/value/version", driver.version}},
          .fixes = {Advice{
              snapshot.os.value.container.empty()
                  ? message("reboot, or unload and load the nvidia kernel modules")
                  : message("remove the driver libraries from the image, so that those of the host are "
                            "mounted; on the host, reboot if its driver was updated")}}};
}

CheckResult driver_parts_match(const Snapshot& snapshot) {
  CheckResult result;
  const Driver& driver = snapshot.driver.value;
  if (!snapshot.driver.present()) {
    result.unknown.push_back(message("driver: {}", why_missing(snapshot.driver)));
    return result;
  }
  const auto kernel = kernel_driver(snapshot);
  // A libcuda that the loader does not use, or a stub, may have any version.
  const bool reached = driver.libcuda_reached != "not by the loader" && driver.libcuda_kind != "stub";
  const auto libcuda = reached ? Version::parse(driver.libcuda_version) : std::nullopt;
  const bool compat = driver.libcuda_kind == "compat";
  // Forward compatibility is a newer libcuda with an older kernel module. The opposite is refused.
  if (libcuda && (compat ? *libcuda < *kernel : *libcuda != *kernel))
    result.findings.push_back(
        driver_mismatch(snapshot, driver.libcuda, driver.libcuda_version, "libcuda_version"));
  // One finding is enough: all parts are updated together.
  const auto nvml = Version::parse(driver.libnvidia_ml_version);
  if (result.findings.empty() && nvml && *nvml != *kernel)
    result.findings.push_back(
        driver_mismatch(snapshot, driver.libnvidia_ml, driver.libnvidia_ml_version, "libnvidia_ml_version"));
  if (result.findings.empty() && driver.nvml_error.find("version mismatch") != std::string::npos) {
    result.findings.push_back(
        {.cause = Cause::NvmlMismatch,
         .subject = "NVML",
         .module = "torch",
         .summary =
             message("NVML does not work with the kernel module {}: {}", driver.version, driver.nvml_error),
         .evidence = {{"/driver/value/nvml_error", driver.nvml_error}},
         .fixes = {Advice{message("reboot, or unload and load the nvidia kernel modules")}}});
  }
  return result;
}

}  // namespace

extern const Check kDriverPartsMatch{
    .id = "driver-parts-match",
    .question = "Do the driver's kernel module and libraries have the same version?",
    .needs = 0,
    .confirmed_by_import = false,
    .not_applicable = driver_parts_not_applicable,
    .run = driver_parts_match};

}  // namespace scankit::checks

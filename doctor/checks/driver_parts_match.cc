// SPDX-License-Identifier: Apache-2.0
#include "doctor/base/say.h"
#include "doctor/checks/check.h"
#include "doctor/checks/gpu_view.h"

namespace scankit {
namespace {

// A described driver is one number; there is nothing to compare.
std::string driver_parts_not_applicable(const Snapshot& snapshot) {
  if (const std::string why = no_use_of_gpus(snapshot); !why.empty()) return why;
  const Driver& driver = snapshot.driver.value;
  if (snapshot.driver.state == ProbeState::Absent) return say("driver: {}", why_missing(snapshot.driver));
  if (snapshot.driver.present() && !kernel_driver(snapshot))
    return say("no kernel module of the driver is visible here");
  if (snapshot.driver.present() && driver.libcuda_version.empty() && driver.libnvidia_ml_version.empty() &&
      driver.nvml_error.empty())
    return say("no library of the driver has a version in its name");
  return "";
}

Finding driver_mismatch(const Snapshot& snapshot, const std::string& library, const std::string& version,
                        const std::string& field) {
  const Driver& driver = snapshot.driver.value;
  return {
      .cause = Cause::NvmlMismatch,
      .subject = library,
      .module = "torch",
      .summary = say("{} is of driver {}, the kernel module that runs is {} ({})", library, version,
                     driver.version, driver.source),
      .evidence = {{"/driver/value/" + field, version}, {"/driver/value/version", driver.version}},
      .fixes = {Advice{snapshot.os.value.container.empty()
                           ? say("reboot, or unload and load the nvidia kernel modules")
                           : say("remove the driver libraries that the image brings, so that those of the "
                                 "host are mounted; on the host, reboot if its driver was updated")}}};
}

CheckResult driver_parts_match(const Snapshot& snapshot) {
  CheckResult result;
  const Driver& driver = snapshot.driver.value;
  if (!snapshot.driver.present()) {
    result.unknown.push_back(say("driver: {}", why_missing(snapshot.driver)));
    return result;
  }
  const auto kernel = kernel_driver(snapshot);
  const bool reached = driver.libcuda_reached != "not by the loader" && driver.libcuda_kind != "stub";
  const auto libcuda = reached ? Version::parse(driver.libcuda_version) : std::nullopt;
  const bool compat = driver.libcuda_kind == "compat";
  // Forward compatibility is a newer libcuda on an older kernel module; the other way round it is refused.
  if (libcuda && (compat ? *libcuda < *kernel : *libcuda != *kernel))
    result.findings.push_back(
        driver_mismatch(snapshot, driver.libcuda, driver.libcuda_version, "libcuda_version"));
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
             say("NVML refuses to work with the kernel module {}: {}", driver.version, driver.nvml_error),
         .evidence = {{"/driver/value/nvml_error", driver.nvml_error}},
         .fixes = {Advice{say("reboot, or unload and load the nvidia kernel modules")}}});
  }
  return result;
}

}  // namespace

extern const Check kDriverPartsMatch{
    .id = "driver-parts-match",
    .question = "Are the driver's kernel module and libraries of one version?",
    .needs = 0,
    .settled_by_import = false,
    .not_applicable = driver_parts_not_applicable,
    .run = driver_parts_match};
}  // namespace scankit

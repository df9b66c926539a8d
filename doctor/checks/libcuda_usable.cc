// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/say.h"
#include "doctor/checks/check.h"
#include "doctor/checks/gpu_view.h"

namespace scankit {
namespace {

std::string libcuda_not_applicable(const Snapshot& snapshot) {
  if (const std::string why = no_use_of_gpus(snapshot); !why.empty()) return why;
  // Who describes a GPU that is not here has no driver for it here either.
  if (snapshot.driver.state == ProbeState::Absent &&
      std::ranges::all_of(snapshot.gpus.value, [](const Gpu& gpu) { return gpu.sm_source == "described"; }))
    return say("driver: {}", why_missing(snapshot.driver));
  if (snapshot.driver.present() && snapshot.driver.value.source == "described")
    return say("the driver is described, not installed");
  return "";
}

// LD_LIBRARY_PATH without the folder; "" where nothing is left of it.
std::string library_path_without(const Snapshot& snapshot, const std::string& folder) {
  const auto set = snapshot.environment.find("LD_LIBRARY_PATH");
  std::string rest;
  const std::string text = set == snapshot.environment.end() ? "" : set->second;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find_first_of(":;", at), text.size());
    std::string entry = text.substr(at, end - at);
    while (entry.size() > 1 && entry.back() == '/') entry.pop_back();
    if (!entry.empty() && entry != folder) rest += (rest.empty() ? "" : ":") + entry;
    at = end + 1;
  }
  return rest;
}

Finding unusable(const Snapshot& snapshot, std::string summary, Evidence evidence, Fix fix) {
  Finding finding{.cause = Cause::NoDriverLibcuda,
                  .subject = "libcuda.so.1",
                  .module = "torch",
                  .summary = std::move(summary),
                  .evidence = {std::move(evidence)},
                  .fixes = {std::move(fix)}};
  // Without a module that computes on a GPU, it may well be meant so: a container for CPU work on such a
  // host.
  const auto code = device_code(snapshot);
  if (std::ranges::none_of(code, [](const DeviceCode& of) { return of.module != "torch"; }))
    finding.severity_override = Severity::Note;
  return finding;
}

Finding no_driver(const Snapshot& snapshot) {
  const auto gpus = seen_gpus(snapshot);
  return unusable(
      snapshot,
      say("{} is here and no NVIDIA driver for it ({}), so CUDA finds no device", gpus.front().name(),
          why_missing(snapshot.driver)),
      {"/driver/state", "absent"},
      Advice{snapshot.os.value.container.empty()
                 ? say("install the NVIDIA driver")
                 : say("install the NVIDIA driver on the host, and start the container with its GPUs")});
}

CheckResult libcuda_usable(const Snapshot& snapshot) {
  CheckResult result;
  const Driver& driver = snapshot.driver.value;
  if (snapshot.driver.state == ProbeState::Absent) {
    result.findings.push_back(no_driver(snapshot));
  } else if (!snapshot.driver.present()) {
    result.unknown.push_back(say("driver: {}", why_missing(snapshot.driver)));
  } else if (driver.libcuda_kind == "stub") {
    const bool variable = driver.libcuda_reached == "LD_LIBRARY_PATH";
    const std::string rest = library_path_without(snapshot, path_dirname(driver.libcuda));
    // Nobody puts a stub before a driver that is there on purpose.
    result.findings.push_back(unusable(
        snapshot,
        variable ? say("the loader takes {} by LD_LIBRARY_PATH, a stub for the linker: it loads, and then "
                       "every call of CUDA fails",
                       driver.libcuda)
                 : say("the loader takes {} by its {}, a stub for the linker: it loads, and then every call "
                       "of CUDA fails",
                       driver.libcuda, retold(driver.libcuda_reached)),
        {"/driver/value/libcuda", driver.libcuda},
        variable ? Fix{SetEnvironment{"LD_LIBRARY_PATH", rest}}
                 : Fix{Advice{say("take the stub's folder out of /etc/ld.so.conf.d and run ldconfig")}}));
    result.findings.back().severity_override.reset();
  } else if (driver.libcuda.empty()) {
    result.findings.push_back(unusable(
        snapshot,
        snapshot.os.value.container.empty()
            ? say("the kernel module of driver {} runs, but no libcuda.so.1 is here", driver.version)
            : say("the kernel module of driver {} runs, but no libcuda.so.1 is here: the container was "
                  "started "
                  "without its GPUs",
                  driver.version),
        {"/driver/value/libcuda", ""},
        Advice{
            snapshot.os.value.container.empty()
                ? say("install the driver's libraries of that version")
                : say("start the container with its GPUs (docker run --gpus all, or the nvidia runtime)")}));
  } else if (driver.libcuda_reached == "not by the loader") {
    result.findings.push_back(unusable(
        snapshot,
        say("{} is here, but neither LD_LIBRARY_PATH nor the loader's cache leads to it", driver.libcuda),
        {"/driver/value/libcuda", driver.libcuda},
        Advice{
            say("name {} in a file of /etc/ld.so.conf.d and run ldconfig", path_dirname(driver.libcuda))}));
  }
  return result;
}

}  // namespace

extern const Check kLibcudaUsable{.id = "libcuda-usable",
                                  .question = "Does the loader take the driver's own libcuda?",
                                  .needs = kGpus,
                                  .settled_by_import = false,
                                  .not_applicable = libcuda_not_applicable,
                                  .run = libcuda_usable};
}  // namespace scankit

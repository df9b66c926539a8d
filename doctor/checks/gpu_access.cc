// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/message.h"
#include "doctor/checks/check.h"
#include "doctor/checks/gpu_queries.h"

namespace scankit::checks {
namespace {

Message visible_gpus_not_applicable(const Snapshot& snapshot) {
  if (const Message why = no_use_of_gpus(snapshot); !why.empty()) return why;
  return visible_devices(snapshot) ? "" : message("CUDA_VISIBLE_DEVICES is not set");
}

// At least one GPU stays visible, so nothing is broken; what is hidden is only mentioned.
std::vector<Message> partly_hidden(const Snapshot& snapshot, const VisibleDevices& set,
                                   const std::vector<SeenGpu>& gpus) {
  std::vector<Message> lines;
  for (const SeenGpu& gpu : gpus)
    if (gpu.visibility == Visibility::Hidden)
      lines.push_back(message("{} is hidden by CUDA_VISIBLE_DEVICES={}", gpu.name(), set.text));
  const auto n = snapshot.driver.value.mig.size();
  for (const std::string& entry : set.accepted)
    if (entry.starts_with("MIG-") && n == 0)
      lines.push_back(message("whether the MIG instance {} exists: no MIG instances were listed", entry));
  if (n > 0)
    lines.push_back(message_n(n, "which of the {} MIG instance the variable selects",
                              "which of the {} MIG instances the variable selects", n));
  return lines;
}

CheckResult gpus_visible(const Snapshot& snapshot) {
  CheckResult result;
  const auto set = visible_devices(snapshot);
  const auto gpus = seen_gpus(snapshot);
  const auto hidden = [](const SeenGpu& gpu) { return gpu.visibility == Visibility::Hidden; };
  if (!std::ranges::all_of(gpus, hidden)) {
    result.not_checked = partly_hidden(snapshot, *set, gpus);
    return result;
  }
  // An empty value, "-1" and "NoDevFiles" are ways to hide GPUs on purpose. A number or id that names
  // nothing is a mistake.
  const bool on_purpose = set->text.empty() || set->text.starts_with('-') || set->text.starts_with("NoDev");
  const std::string value = set->text.empty() ? "\"\"" : set->text;
  const std::size_t n = gpus.size();
  if (!set->twice.empty()) {
    result.findings.push_back(
        {.cause = Cause::NoDriverLibcuda,
         .subject = "CUDA_VISIBLE_DEVICES",
         .module = "torch",
         .summary =
             message("CUDA_VISIBLE_DEVICES={} contains {} twice, so CUDA finds no device", value, set->twice),
         .evidence = {{"/environment/CUDA_VISIBLE_DEVICES", set->text}},
         .fixes = {SetEnvironment{"CUDA_VISIBLE_DEVICES", ""}}});
    return result;
  }
  Finding finding{
      .cause = Cause::NoDriverLibcuda,
      .subject = "CUDA_VISIBLE_DEVICES",
      .module = "torch",
      .summary =
          on_purpose
              ? message_n(
                    n,
                    "CUDA_VISIBLE_DEVICES={} hides the only GPU of this machine, so CUDA finds no "
                    "device",
                    "CUDA_VISIBLE_DEVICES={} hides all {} GPUs of this machine, so CUDA finds no device",
                    value, n)
              : message_n(
                    n,
                    "CUDA_VISIBLE_DEVICES={} does not match the only GPU of this machine, so CUDA finds "
                    "no device",
                    "CUDA_VISIBLE_DEVICES={} matches none of the {} GPUs of this machine, so CUDA finds "
                    "no device",
                    value, n),
      .evidence = {{"/environment/CUDA_VISIBLE_DEVICES", set->text}},
      .fixes = {SetEnvironment{"CUDA_VISIBLE_DEVICES", ""}}};
  if (on_purpose) finding.circumstances.push_back(Circumstance::HiddenOnPurpose);
  result.findings.push_back(finding);
  return result;
}

}  // namespace

extern const Check kGpusVisible{.id = "gpus-visible",
                                .question = "Does CUDA_VISIBLE_DEVICES leave a GPU visible?",
                                .needs = kGpus,
                                .confirmed_by_import = false,
                                .not_applicable = visible_gpus_not_applicable,
                                .run = gpus_visible};

namespace {

Message libcuda_not_applicable(const Snapshot& snapshot) {
  if (const Message why = no_use_of_gpus(snapshot); !why.empty()) return why;
  // A user who describes a GPU that is not here has no driver for it here either.
  if (snapshot.driver.state == ProbeState::Absent &&
      std::ranges::all_of(snapshot.gpus.value, [](const Gpu& gpu) { return gpu.sm_source == "described"; }))
    return message("driver: {}", why_missing(snapshot.driver));
  if (snapshot.driver.present() && snapshot.driver.value.source == "described")
    return message("the driver is described, not installed");
  return "";
}

// LD_LIBRARY_PATH without the directory; "" if nothing is left. The loader accepts both
// separators (ld.so(8)).
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

// A finding that CUDA has no working libcuda.
Finding unusable(Message summary, Evidence evidence, Fix fix) {
  return {.cause = Cause::NoDriverLibcuda,
          .subject = "libcuda.so.1",
          .module = "torch",
          .summary = std::move(summary),
          .evidence = {std::move(evidence)},
          .fixes = {std::move(fix)}};
}

// Without a module that computes on a GPU, a missing libcuda may be intended.
Finding missing(const Snapshot& snapshot, Message summary, Evidence evidence, Fix fix) {
  Finding finding = unusable(std::move(summary), std::move(evidence), std::move(fix));
  const auto code = device_code(snapshot);
  if (std::ranges::none_of(code, [](const DeviceCode& of) { return of.module != "torch"; }))
    finding.circumstances.push_back(Circumstance::NoModuleUsesGpus);
  return finding;
}

Finding no_driver(const Snapshot& snapshot) {
  const auto gpus = seen_gpus(snapshot);
  return missing(
      snapshot,
      message("{} has no NVIDIA driver ({}), so CUDA finds no device", gpus.front().name(),
              why_missing(snapshot.driver)),
      {"/driver/state", "absent"},
      Advice{snapshot.os.value.container.empty()
                 ? message("install the NVIDIA driver")
                 : message("install the NVIDIA driver on the host, and start the container with its GPUs")});
}

// The ways in which libcuda may be useless: no driver, a stub that is loaded, no library, a library
// that is not found.
CheckResult libcuda_usable(const Snapshot& snapshot) {
  CheckResult result;
  const Driver& driver = snapshot.driver.value;
  if (snapshot.driver.state == ProbeState::Absent) {
    result.findings.push_back(no_driver(snapshot));
  } else if (!snapshot.driver.present()) {
    result.unknown.push_back(message("driver: {}", why_missing(snapshot.driver)));
  } else if (driver.libcuda_kind == "stub") {
    const bool variable = driver.libcuda_reached == "LD_LIBRARY_PATH";
    const bool cached = driver.libcuda_reached == "ld.so.cache";
    const std::string rest = library_path_without(snapshot, path_dirname(driver.libcuda));
    // Nobody puts a stub before the driver on purpose.
    result.findings.push_back(unusable(
        variable
            ? message("because of LD_LIBRARY_PATH the loader uses {}, a stub for the linker: it loads, but "
                      "every CUDA call fails",
                      driver.libcuda)
            : message(
                  "the loader finds {}, a stub for the linker, instead of the driver's libcuda: it loads, "
                  "but every CUDA call fails",
                  driver.libcuda),
        {"/driver/value/libcuda", driver.libcuda},
        variable
            ? Fix{SetEnvironment{"LD_LIBRARY_PATH", rest}}
            : Fix{Advice{
                  cached ? message("remove the directory of the stub from /etc/ld.so.conf.d and run ldconfig")
                         : message("move {} to another directory, and install the driver's libraries",
                                   driver.libcuda)}}));
  } else if (driver.libcuda.empty()) {
    result.findings.push_back(missing(
        snapshot,
        snapshot.os.value.container.empty()
            ? message("the kernel module of driver {} is loaded, but libcuda.so.1 was not found",
                      driver.version)
            : message(
                  "the kernel module of driver {} is loaded, but libcuda.so.1 was not found: the container "
                  "was started without its GPUs",
                  driver.version),
        {"/driver/value/libcuda", ""},
        Advice{
            snapshot.os.value.container.empty()
                ? message("install the driver's libraries of that version")
                : message(
                      "start the container with its GPUs (docker run --gpus all, or the nvidia runtime)")}));
  } else if (driver.libcuda_reached == "not by the loader") {
    result.findings.push_back(missing(
        snapshot,
        message("{} exists, but neither LD_LIBRARY_PATH nor the loader's cache leads to it", driver.libcuda),
        {"/driver/value/libcuda", driver.libcuda},
        Advice{message("add {} to a file in /etc/ld.so.conf.d and run ldconfig",
                       path_dirname(driver.libcuda))}));
  }
  return result;
}

}  // namespace

extern const Check kLibcudaUsable{.id = "libcuda-usable",
                                  .question = "Does the loader use the driver's own libcuda?",
                                  .needs = kGpus,
                                  .confirmed_by_import = false,
                                  .not_applicable = libcuda_not_applicable,
                                  .run = libcuda_usable};

namespace {

bool is_set(const Gpu& gpu, const char* detail) {
  const auto found = gpu.details.find(detail);
  return found != gpu.details.end() && found->second == 1;
}

// GPUs before Ampere, and those without ECC, have no spare rows to tell of.
bool tells_of_rows(const SeenGpu& gpu) { return gpu.gpu->details.contains("remapping_failed"); }

Message gpus_sound_not_applicable(const Snapshot& snapshot) {
  if (const Message why = no_use_of_gpus(snapshot); !why.empty()) return why;
  const std::vector<SeenGpu> gpus = seen_gpus(snapshot);
  if (!snapshot.gpus.present() || std::ranges::any_of(gpus, tells_of_rows)) return "";
  return std::ranges::all_of(gpus, [](const SeenGpu& gpu) { return gpu.gpu->details.empty(); })
             ? message("the GPUs were not asked for the state of their memory: -v asks them")
             : message("no GPU reports the state of its memory rows");
}

// NVIDIA GPU Memory Error Management: memory rows with errors that could not be corrected are replaced by spare ones at
// the next reset, and a GPU whose spare rows are used up has to be replaced.
CheckResult gpus_sound(const Snapshot& snapshot) {
  CheckResult result;
  for (const SeenGpu& gpu : seen_gpus(snapshot)) {
    if (!tells_of_rows(gpu))
      result.not_checked.push_back(message("{} does not report the state of its memory rows", gpu.name()));
    const bool failed = is_set(*gpu.gpu, "remapping_failed");
    if (!failed && !is_set(*gpu.gpu, "remapping_pending")) continue;
    const std::string at = gpu.pointer() + "/details/";
    Finding finding{.cause = Cause::GpuHardwareFault, .subject = gpu.gpu->name, .module = "torch"};
    finding.summary =
        failed ? message("{} has damaged memory and no spare rows left for it", gpu.name())
               : message("{} has damaged memory rows, which wait to be replaced by spare ones", gpu.name());
    finding.evidence.push_back({at + (failed ? "remapping_failed" : "remapping_pending"), "1"});
    finding.fixes.push_back(
        Advice{failed ? message("have this GPU replaced")
                      : message("as root: `nvidia-smi --gpu-reset -i {}` when no program uses it, or "
                                "restart the machine",
                                gpu.gpu->index)});
    result.findings.push_back(std::move(finding));
  }
  return result;
}

}  // namespace

extern const Check kGpusSound{.id = "gpus-sound",
                              .question = "Is the memory of every GPU free of damaged rows?",
                              .needs = kGpus,
                              .confirmed_by_import = false,
                              .not_applicable = gpus_sound_not_applicable,
                              .run = gpus_sound};

}  // namespace scankit::checks

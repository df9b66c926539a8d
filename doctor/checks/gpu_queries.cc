// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/gpu_queries.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>

#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/knowledge/drivers.h"

namespace scankit {
namespace {

// What libcuda makes of CUDA_VISIBLE_DEVICES was seen on an H200 with driver 580.159.04 (the guide's "CUDA
// environment variables" says less): as strtol, blanks and a sign before the digits, anything behind them.
std::optional<std::size_t> index_of(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  std::size_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || (negative && value != 0)) return std::nullopt;
  return value;
}

std::vector<std::string> entries_of(const std::string& text) {
  std::vector<std::string> entries;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find(',', at), text.size());
    std::string entry = text.substr(at, end - at);
    entry.erase(0, std::min(entry.find_first_not_of(" \t"), entry.size()));
    while (entry.ends_with(' ') || entry.ends_with('\t')) entry.pop_back();
    entries.push_back(std::move(entry));
    at = end + 1;
  }
  return entries;
}

bool is_uuid(const std::string& entry) { return entry.starts_with("GPU-"); }
bool is_mig(const std::string& entry) { return entry.starts_with("MIG-"); }
bool described(const Gpu& gpu) { return gpu.sm_source == "described"; }

// A UUID may be shortened as long as it stays unique; its digits may be of either case, and what stands
// behind them is not read.
bool names(const std::string& entry, const Gpu& gpu) {
  const std::string wanted = lowered(entry).substr(0, gpu.uuid.size());
  return !gpu.uuid.empty() && entry.size() > 4 && lowered(gpu.uuid).starts_with(wanted);
}

bool entry_is_good(const std::string& entry, const std::vector<Gpu>& gpus) {
  if (is_mig(entry)) return entry.size() > 4;  // which instances there are, only NVML knows
  if (is_uuid(entry))
    return entry.size() > 4 &&
           std::ranges::any_of(gpus, [&](const Gpu& gpu) { return gpu.uuid.empty() || names(entry, gpu); });
  const auto index = index_of(entry);
  return index && *index < gpus.size();
}

// Numbers and UUIDs are not mixed: the list ends where the kind changes.
bool same_kind(const std::string& one, const std::string& other) {
  return (is_uuid(one) || is_mig(one)) == (is_uuid(other) || is_mig(other));
}

// The same GPU by the same way of naming it.
bool same_gpu(const std::string& one, const std::string& other, const std::vector<Gpu>& gpus) {
  if (is_mig(one) || is_mig(other)) return one == other;
  if (!is_uuid(one)) return index_of(one) == index_of(other);
  return one == other ||
         std::ranges::any_of(gpus, [&](const Gpu& gpu) { return names(one, gpu) && names(other, gpu); });
}

// Numbers follow CUDA's order: the fastest first, unless CUDA_DEVICE_ORDER asks for the order of the bus.
// With one kind of GPU that makes no difference to what runs.
bool order_is_known(const Snapshot& snapshot) {
  const auto order = snapshot.environment.find("CUDA_DEVICE_ORDER");
  if (order != snapshot.environment.end() && order->second == "PCI_BUS_ID") return true;
  const auto& gpus = snapshot.gpus.value;
  return std::ranges::all_of(gpus, [&](const Gpu& gpu) { return gpu.sm == gpus.front().sm; });
}

Visibility visibility_of(const Snapshot& snapshot, std::size_t g, const VisibleDevices& set) {
  const Gpu& gpu = snapshot.gpus.value[g];
  if (set.accepted.empty()) return Visibility::Hidden;
  bool unclear = false;
  for (const std::string& entry : set.accepted) {
    const bool by_uuid = is_uuid(entry);
    if (is_mig(entry) || (by_uuid && gpu.uuid.empty()) || (!by_uuid && !order_is_known(snapshot))) {
      unclear = true;
    } else if (by_uuid ? names(entry, gpu) : index_of(entry) == g) {
      return Visibility::Visible;
    }
  }
  // Where every GPU is of one kind, it does not matter which of them is meant.
  if (unclear && snapshot.gpus.value.size() == 1) return Visibility::Visible;
  return unclear ? Visibility::Unclear : Visibility::Hidden;
}

}  // namespace

std::string SeenGpu::name() const {
  const std::string& what = gpu->name.empty() ? gpu->pci_device : gpu->name;
  return what.empty() ? say("GPU {}", gpu->index) : say("GPU {} ({})", gpu->index, what);
}
std::string SeenGpu::pointer() const { return "/gpus/value/" + std::to_string(index); }

std::optional<VisibleDevices> visible_devices(const Snapshot& snapshot) {
  const auto found = snapshot.environment.find("CUDA_VISIBLE_DEVICES");
  if (found == snapshot.environment.end()) return std::nullopt;
  VisibleDevices set{.text = found->second, .accepted = {}, .refused = "", .twice = ""};
  const auto& gpus = snapshot.gpus.value;
  for (const std::string& entry : entries_of(set.text)) {
    const bool first = set.accepted.empty();
    if (!entry_is_good(entry, gpus) || (!first && !same_kind(entry, set.accepted.front()))) {
      set.refused = entry.empty() ? say("an empty entry") : entry;
      break;
    }
    if (std::ranges::any_of(set.accepted,
                            [&](const std::string& other) { return same_gpu(entry, other, gpus); }))
      set.twice = entry;  // cuInit answers 101, invalid device ordinal
    set.accepted.push_back(entry);
  }
  if (!set.twice.empty()) set.accepted.clear();
  return set;
}

std::vector<SeenGpu> seen_gpus(const Snapshot& snapshot) {
  std::vector<SeenGpu> seen;
  const auto set = visible_devices(snapshot);
  const auto& gpus = snapshot.gpus.value;
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    const auto sm = static_cast<unsigned>(std::strtoul(gpus[g].sm.c_str(), nullptr, 10));
    // A GPU that the user described is asked about, whatever this shell hides.
    const Visibility visibility =
        !set || described(gpus[g]) ? Visibility::Visible : visibility_of(snapshot, g, *set);
    seen.push_back({&gpus[g], g, sm, visibility});
  }
  return seen;
}

std::optional<Version> kernel_driver(const Snapshot& snapshot) {
  const Driver& driver = snapshot.driver.value;
  if (!snapshot.driver.present()) return std::nullopt;
  if (!driver.source.starts_with("/proc/") && !driver.source.starts_with("/sys/")) return std::nullopt;
  return Version::parse(driver.version);
}

std::optional<Version> user_driver(const Snapshot& snapshot) {
  const Driver& driver = snapshot.driver.value;
  if (!snapshot.driver.present()) return std::nullopt;
  const bool taken = driver.libcuda_kind != "stub" && driver.libcuda_reached != "not by the loader";
  const bool told = kernel_driver(snapshot) || driver.source == driver.libcuda;
  if (taken && told && !driver.libcuda_version.empty()) return Version::parse(driver.libcuda_version);
  return Version::parse(driver.version);
}

std::optional<SupportedCuda> supported_cuda(const Snapshot& snapshot) {
  const Driver& driver = snapshot.driver.value;
  const auto user = user_driver(snapshot);
  const bool compat = driver.libcuda_kind == "compat";
  // NVML asks the libcuda that it finds itself, which need not be the one that the loader takes.
  if (const auto told = Version::parse(driver.cuda_version); told && !compat && snapshot.driver.present())
    return SupportedCuda{*told, false, {"/driver/value/cuda_version", driver.cuda_version}};
  if (!user) return std::nullopt;
  const auto known = cuda_of_driver(*user);
  if (!known) return std::nullopt;
  const bool library = !driver.libcuda_version.empty() && *user == Version::parse(driver.libcuda_version);
  return SupportedCuda{known->cuda, known->or_newer,
                       library ? Evidence{"/driver/value/libcuda_version", driver.libcuda_version}
                               : Evidence{"/driver/value/version", driver.version}};
}

namespace {
// Chips of the Tegra line: their cubins and those of desktop chips of the same major do not exchange (CUDA
// binary compatibility, "supported only for the desktop").
bool is_tegra(unsigned sm) { return sm == 53 || sm == 62 || sm == 72 || sm == 87 || sm == 101 || sm == 110; }
}  // namespace

// A cubin runs within its major from its own minor up; PTX is compiled by the driver for anything newer; an
// "a" image runs on exactly the chip it names, an "f" image within its family.
bool runs_on(const DeviceImage& image, unsigned gpu) {
  const bool same_major = image.sm / 10 == gpu / 10;
  if (image.kind == "lto") return false;
  if (image.specific == "a") return image.sm == gpu;
  if (image.specific == "f") return same_major && image.sm <= gpu;
  if (image.kind == "ptx") return image.sm <= gpu;
  if (is_tegra(image.sm) || is_tegra(gpu)) return image.sm == gpu;
  return same_major && image.sm <= gpu;
}

std::string image_name(const DeviceImage& image) {
  return (image.kind == "ptx" ? "PTX " : "sm_") + std::to_string(image.sm) + image.specific;
}

std::string image_list(const std::vector<DeviceImage>& images) {
  std::set<std::pair<unsigned, std::string>> names;
  for (const DeviceImage& image : images) names.insert({image.sm, image_name(image)});
  std::vector<std::string> ordered;
  for (const auto& [sm, name] : names) ordered.push_back(name);
  return join(ordered);
}

std::optional<bool> driver_unpacks(const Snapshot& snapshot, const DeviceImage& image) {
  const auto needed = driver_that_unpacks(image.compression);
  if (!needed) return true;
  const auto user = user_driver(snapshot);
  if (!user) return std::nullopt;
  // Only the branch of a Windows driver can be compared with a Linux version.
  return snapshot.os.value.wsl ? user->part(0) >= needed->part(0) : *user >= *needed;
}

CubinAbi driver_reads_cubin_abi(const Snapshot& snapshot, const DeviceImage& image) {
  const auto user = user_driver(snapshot);
  // A snapshot of an older scankit does not say how the image is written.
  if (image.kind != "cubin" || image.elf_abi == 0 || !user) return CubinAbi::Read;
  const auto drivers = drivers_of_cubin_abi(image.elf_abi, image.sm);
  if (!drivers) return CubinAbi::Unknown;
  const bool wsl = snapshot.os.value.wsl;
  const auto reached = [&](Version driver) {
    // "580.65" is what nvidia-smi's readers write of 580.65.06: what is not said does not count.
    driver.release.resize(std::min(driver.release.size(), user->release.size()));
    return wsl ? user->part(0) >= driver.part(0) : *user >= driver;
  };
  if (reached(drivers->reads)) return CubinAbi::Read;
  return drivers->refused_below && !reached(*drivers->refused_below) ? CubinAbi::Refused : CubinAbi::Unknown;
}

std::vector<DeviceCode> device_code(const Snapshot& snapshot) {
  std::vector<DeviceCode> found;
  if (snapshot.torch.present() && !snapshot.torch.value.images.empty())
    found.push_back(
        {snapshot.torch.value.location, "torch", "/torch/value/images", &snapshot.torch.value.images});
  for (const Copy& copy : whole_copies(snapshot))
    if (!copy->images.empty())
      found.push_back({copy->path, copy->module, copy.pointer + "/images", &copy->images});
  return found;
}

std::string no_use_of_gpus(const Snapshot& snapshot) {
  if (snapshot.gpus.state == ProbeState::Absent) return say("GPUs: {}", why_missing(snapshot.gpus));
  const bool torch_uses = snapshot.torch.present() && !snapshot.torch.value.cuda.empty();
  const bool torch_open =
      snapshot.torch.state == ProbeState::Failed || snapshot.torch.state == ProbeState::NotRun;
  if (torch_uses || torch_open || !device_code(snapshot).empty()) return "";
  return say("neither torch nor a module under diagnosis computes on a GPU");
}

std::vector<Fix> rebuild_for(const Snapshot& snapshot, const DeviceCode& code, const SeenGpu& gpu,
                             const std::string& otherwise) {
  const auto copy = selected_copy(snapshot, code.module);
  std::string arch = gpu.gpu->sm;  // torch.utils.cpp_extension writes "9.0" and "12.0" for sm_90 and sm_120
  if (!copy || arch.size() < 2) return module_fixes(snapshot, code.module, otherwise);
  arch.insert(arch.size() - 1, ".");
  return rebuild_fixes(snapshot, *copy, otherwise, {{"TORCH_CUDA_ARCH_LIST", arch}});
}

}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
#include "doctor/checks/gpu_queries.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>

#include "doctor/base/message.h"
#include "doctor/base/text.h"
#include "doctor/knowledge/cuda_support.h"

namespace scankit::checks {
namespace {

// How libcuda reads CUDA_VISIBLE_DEVICES was observed on an H200 with driver 580.159.04; the CUDA
// programming guide says less. Numbers are read as by strtol: blanks and a sign may come before the
// digits, anything after them.
std::optional<std::size_t> index_of(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  std::size_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || (negative && value != 0)) return std::nullopt;
  return value;
}

// Split at commas, without blanks around the entries. A trailing comma adds no entry.
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

// Whether a UUID entry names this GPU. A UUID may be shortened as long as it is unique, its digits may be
// of either case, and characters after a complete one are ignored.
bool names(const std::string& entry, const Gpu& gpu) {
  const std::string wanted = lowered(entry).substr(0, gpu.uuid.size());
  return !gpu.uuid.empty() && lowered(gpu.uuid).starts_with(wanted);
}

// Whether CUDA accepts the entry; the first one that it does not accept ends the list.
bool entry_is_good(const std::string& entry, const std::vector<Gpu>& gpus) {
  if (is_mig(entry)) return entry.size() > 4;  // which instances there are, only NVML knows
  if (is_uuid(entry))
    return entry.size() > 4 &&
           std::ranges::any_of(gpus, [&](const Gpu& gpu) { return gpu.uuid.empty() || names(entry, gpu); });
  const auto index = index_of(entry);
  return index && *index < gpus.size();
}

// Numbers and UUIDs cannot be mixed: the list ends where the kind changes.
bool same_kind(const std::string& one, const std::string& other) {
  return (is_uuid(one) || is_mig(one)) == (is_uuid(other) || is_mig(other));
}

// Whether both entries name the same GPU.
bool same_gpu(const std::string& one, const std::string& other, const std::vector<Gpu>& gpus) {
  if (is_mig(one) || is_mig(other)) return one == other;
  if (!is_uuid(one)) return index_of(one) == index_of(other);
  return one == other ||
         std::ranges::any_of(gpus, [&](const Gpu& gpu) { return names(one, gpu) && names(other, gpu); });
}

// Whether a number certainly means the GPU with that index here. CUDA numbers GPUs by speed unless
// CUDA_DEVICE_ORDER is PCI_BUS_ID. If all have the same architecture, a difference does not matter
// for what runs.
bool order_is_known(const Snapshot& snapshot) {
  const auto order = snapshot.environment.find("CUDA_DEVICE_ORDER");
  if (order != snapshot.environment.end() && order->second == "PCI_BUS_ID") return true;
  const auto& gpus = snapshot.gpus.value;
  return std::ranges::all_of(gpus, [&](const Gpu& gpu) { return gpu.sm == gpus.front().sm; });
}

// Unclear if an entry may or may not name this GPU: a MIG instance, a UUID that is not known here, or a
// number in an unknown order.
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
  // With a single GPU, every entry that is accepted means that one.
  if (unclear && snapshot.gpus.value.size() == 1) return Visibility::Visible;
  return unclear ? Visibility::Unclear : Visibility::Hidden;
}

}  // namespace

Message SeenGpu::name() const {
  const std::string& what = gpu->name.empty() ? gpu->pci_device : gpu->name;
  return what.empty() ? message("GPU {}", gpu->index) : message("GPU {} ({})", gpu->index, what);
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
      set.refused = entry.empty() ? message("an empty entry") : Message(entry);
      break;
    }
    if (std::ranges::any_of(set.accepted,
                            [&](const std::string& other) { return same_gpu(entry, other, gpus); }))
      // cuInit() answers 101, invalid device ordinal.
      set.twice = entry;
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
    // A described GPU is the subject of the question, whatever this shell's variable hides.
    const Visibility visibility =
        !set || described(gpus[g]) ? Visibility::Visible : visibility_of(snapshot, g, *set);
    seen.push_back({&gpus[g], g, sm, visibility});
  }
  return seen;
}

// Only a version that the kernel itself reports counts; a described driver has no kernel module.
std::optional<Version> kernel_driver(const Snapshot& snapshot) {
  const Driver& driver = snapshot.driver.value;
  if (!snapshot.driver.present()) return std::nullopt;
  if (!driver.source.starts_with("/proc/") && !driver.source.starts_with("/sys/")) return std::nullopt;
  return Version::parse(driver.version);
}

std::optional<Version> user_driver(const Snapshot& snapshot) {
  const Driver& driver = snapshot.driver.value;
  if (!snapshot.driver.present()) return std::nullopt;
  // The version in libcuda's name counts if the loader uses that file and the version was not
  // merely described.
  const bool taken = driver.libcuda_kind != "stub" && driver.libcuda_reached != "not by the loader";
  const bool told = kernel_driver(snapshot) || driver.source == driver.libcuda;
  if (taken && told && !driver.libcuda_version.empty()) return Version::parse(driver.libcuda_version);
  return Version::parse(driver.version);
}

std::optional<SupportedCuda> supported_cuda(const Snapshot& snapshot) {
  const Driver& driver = snapshot.driver.value;
  const auto user = user_driver(snapshot);
  const bool compat = driver.libcuda_kind == "compat";
  // NVML reports the CUDA release of the libcuda that it finds by itself, which need not be the one that
  // the loader uses.
  if (const auto told = Version::parse(driver.cuda_version); told && !compat && snapshot.driver.present())
    return SupportedCuda{*told, false, {"/driver/value/cuda_version", driver.cuda_version}};
  if (!user) return std::nullopt;
  const auto known = knowledge::cuda_of_driver(*user);
  if (!known) return std::nullopt;
  // Whichever file the version came from is the evidence.
  const bool library = !driver.libcuda_version.empty() && *user == Version::parse(driver.libcuda_version);
  return SupportedCuda{known->cuda, known->or_newer,
                       library ? Evidence{"/driver/value/libcuda_version", driver.libcuda_version}
                               : Evidence{"/driver/value/version", driver.version}};
}

// Chips of the Tegra line. Their cubins cannot be exchanged with those of desktop chips of the same major
// version (CUDA binary compatibility, "supported only for the desktop").
bool is_tegra(unsigned sm) { return sm == 53 || sm == 62 || sm == 72 || sm == 87 || sm == 101 || sm == 110; }

// Whether the image runs on a GPU with this compute capability (90 for 9.0). A cubin runs within its
// major version from its own minor version up; the driver compiles PTX for anything newer; an "a"
// image runs on exactly its chip, and an "f" image within its family. Link-time code ("lto") does not
// run by itself.
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

// Sorted by architecture, each name once.
std::string image_list(const std::vector<DeviceImage>& images) {
  std::set<std::pair<unsigned, std::string>> names;
  for (const DeviceImage& image : images) names.insert({image.sm, image_name(image)});
  std::vector<std::string> ordered;
  for (const auto& [sm, name] : names) ordered.push_back(name);
  return join(ordered);
}

std::optional<bool> driver_unpacks(const Snapshot& snapshot, const DeviceImage& image) {
  const auto needed = knowledge::driver_that_unpacks(image.compression);
  if (!needed) return true;
  const auto user = user_driver(snapshot);
  if (!user) return std::nullopt;
  // On WSL the driver is that of Windows, whose versions are comparable only by their branch,
  // the first number.
  return snapshot.os.value.wsl ? user->part(0) >= needed->part(0) : *user >= *needed;
}

CubinAbi driver_reads_cubin_abi(const Snapshot& snapshot, const DeviceImage& image) {
  const auto user = user_driver(snapshot);
  // A snapshot of an older scankit does not contain the image's ABI.
  if (image.kind != "cubin" || image.elf_abi == 0 || !user) return CubinAbi::Read;
  const auto drivers = knowledge::drivers_of_cubin_abi(image.elf_abi, image.sm);
  if (!drivers) return CubinAbi::Unknown;
  const bool wsl = snapshot.os.value.wsl;
  const auto reached = [&](Version driver) {
    // Some sources shorten "580.65.06" to "580.65"; numbers that are not known do not count.
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

Message no_use_of_gpus(const Snapshot& snapshot) {
  if (snapshot.gpus.state == ProbeState::Absent) return message("GPUs: {}", why_missing(snapshot.gpus));
  const bool torch_uses = snapshot.torch.present() && !snapshot.torch.value.cuda.empty();
  const bool torch_open =
      snapshot.torch.state == ProbeState::Failed || snapshot.torch.state == ProbeState::NotRun;
  if (torch_uses || torch_open || !device_code(snapshot).empty()) return "";
  return message("neither torch nor a checked module uses a GPU");
}

std::vector<Fix> rebuild_for(const Snapshot& snapshot, const DeviceCode& code, const SeenGpu& gpu,
                             const Message& otherwise) {
  const auto copy = selected_copy(snapshot, code.module);
  std::string arch = gpu.gpu->sm;  // torch's cpp_extension writes "9.0" for sm_90 and "12.0" for sm_120
  if (!copy || arch.size() < 2) return module_fixes(snapshot, code.module, otherwise);
  arch.insert(arch.size() - 1, ".");
  return rebuild_fixes(snapshot, *copy, otherwise, {{"TORCH_CUDA_ARCH_LIST", arch}});
}

}  // namespace scankit::checks

// SPDX-License-Identifier: Apache-2.0
// The driver has two halves that can be of different releases: the kernel module, whose version /sys and
// /proc tell, and the user-space libraries libcuda and NVML, which a container brings or mounts. This file
// finds both, by the rules of the loader, and the GPUs on the PCI bus. The libraries are never loaded here:
// scankit-gpu does that in a child (doctor/host/embedded_program.h).
#include <elf.h>

#include <algorithm>
#include <charconv>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/base/text.h"
#include "doctor/base/version.h"
#include "doctor/elf/search.h"
#include "doctor/knowledge/cuda_support.h"
#include "doctor/probes/machine/system.h"

namespace scankit::probes {
namespace {

// Where drivers are put: by packages, the container runtime, WSL, NixOS. In the order of trust. A library
// found only here is one that programs do not get ("not by the loader").
constexpr const char* kKnownFolders[] = {"/usr/lib/wsl/lib",
                                         "/usr/lib/x86_64-linux-gnu",
                                         "/lib/x86_64-linux-gnu",
                                         "/usr/lib/aarch64-linux-gnu",
                                         "/usr/lib/aarch64-linux-gnu/nvidia",  // Jetson Linux from 36 on
                                         "/usr/lib/aarch64-linux-gnu/tegra",   // and before
                                         "/usr/lib64",
                                         "/lib64",
                                         "/usr/lib",
                                         "/usr/local/nvidia/lib64",
                                         "/usr/local/nvidia/lib",
                                         "/run/opengl-driver/lib"};
// The loader's built-in directories of Debian and its kin (multiarch) and of the others. One list serves
// both, since a directory that does not exist costs one look.
constexpr const char* kDefaultFolders[] = {"/lib/x86_64-linux-gnu",
                                           "/usr/lib/x86_64-linux-gnu",
                                           "/lib/aarch64-linux-gnu",
                                           "/usr/lib/aarch64-linux-gnu",
                                           "/lib64",
                                           "/usr/lib64",
                                           "/lib",
                                           "/usr/lib"};

// A library and how it was found, as Driver::libcuda_reached names it. Both "" where it was not found.
struct Place {
  std::string path, reached;
};

// Only absolute directories: an empty or relative entry depends on the current directory of the program that
// loads the library.
std::vector<std::string> library_path(const Host& host) {
  std::vector<std::string> folders;
  const std::string text = host.env("LD_LIBRARY_PATH").value_or("");
  for (std::size_t at = 0; at < text.size();) {  // ld.so(8): separated by ':' or ';'
    const auto end = std::min(text.find_first_of(":;", at), text.size());
    if (end > at && text[at] == '/') folders.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return folders;
}

// The loader's order: LD_LIBRARY_PATH, its cache, its default folders. No library of torch or of Python that
// opens these has a search path of its own that leads to a driver.
class Loader {
 public:
  // The cache has entries for the machine of the examined system alone, so the first with any is it.
  explicit Loader(const Host& host) : host_(host), library_path_(library_path(host)) {
    for (const std::uint16_t machine : {std::uint16_t{EM_X86_64}, std::uint16_t{EM_AARCH64}}) {
      cache_ = elf::LdCache::read(host, machine);
      if (!cache_.entries().empty()) break;
    }
  }
  Place find(const std::string& soname) const {
    for (const std::string& folder : library_path_)
      if (const auto path = path_join(folder, soname); host_.exists(path)) return {path, "LD_LIBRARY_PATH"};
    for (const std::string& path : cache_.lookup(soname, {}))
      if (host_.exists(path)) return {path, "ld.so.cache"};
    for (const char* folder : kDefaultFolders)
      if (const auto path = path_join(folder, soname); host_.exists(path))
        return {path, std::string(sayable("default directory"))};
    for (const char* folder : kKnownFolders)
      if (const auto path = path_join(folder, soname); host_.exists(path))
        return {path, std::string(sayable("not by the loader"))};
    return {};
  }
  const std::vector<std::string>& folders_of_variable() const { return library_path_; }

 private:
  const Host& host_;
  std::vector<std::string> library_path_;
  elf::LdCache cache_;
};

// libcuda.so.580.159.04 -> "580.159.04"; "" for libcuda.so, libcuda.so.1 and the libcuda.so.1.1 of WSL and
// Jetson, whose numbers are no driver's.
std::string version_in_name(const std::string& path, const std::string& prefix) {
  const std::string name = path_basename(path);
  if (!name.starts_with(prefix)) return "";
  const auto version = Version::parse(name.substr(prefix.size()));
  return version && version->part(0) >= 100 ? name.substr(prefix.size()) : "";
}

bool has_segment(const std::string& path, std::string_view segment) {
  return ("/" + path + "/").find("/" + std::string(segment) + "/") != std::string::npos;
}

// A toolkit's stub serves the linker: it loads, and every call answers with an error. The real library takes
// megabytes; WSL's is a small one that opens the driver store of Windows.
std::string libcuda_kind_of(const Host& host, const std::string& found, const std::string& real) {
  if (has_segment(found, "wsl") || has_segment(real, "wsl")) return "wsl";
  if (has_segment(found, "stubs") || has_segment(real, "stubs")) return "stub";
  constexpr std::uint64_t kLargestStub = 512u << 10;
  const auto info = host.stat(real);
  if (info && info->size > 0 && info->size < kLargestStub && version_in_name(real, "libcuda.so.").empty() &&
      path_basename(real) != "libcuda.so.1.1")
    return "stub";
  // cuda-compat-X-Y installs into /usr/local/cuda-X.Y/compat.
  return has_segment(found, "compat") || has_segment(real, "compat") ? "compat" : "driver";
}

// The forward compatibility libcuda of a toolkit (CUDA Compatibility, "Forward Compatibility"), where the
// loader takes another. The first one found counts.
void find_compat(const Host& host, Driver& driver) {
  std::vector<std::string> folders{"/usr/local/cuda/compat"};
  if (const auto entries = host.list("/usr/local"))
    for (const DirEntry& entry : *entries)
      if (entry.name.starts_with("cuda-")) folders.push_back("/usr/local/" + entry.name + "/compat");
  for (const std::string& folder : folders) {
    const auto real = host.realpath(path_join(folder, "libcuda.so.1"));
    if (!real || *real == driver.libcuda) continue;
    driver.compat = *real;
    driver.compat_version = version_in_name(*real, "libcuda.so.");
    return;
  }
}

}  // namespace

void find_driver_libraries(const Host& host, Driver& driver) {
  const Loader loader(host);
  if (const Place place = loader.find("libcuda.so.1"); !place.path.empty()) {
    driver.libcuda = host.realpath(place.path).value_or(place.path);
    driver.libcuda_reached = place.reached;
    driver.libcuda_version = version_in_name(driver.libcuda, "libcuda.so.");
    driver.libcuda_kind = libcuda_kind_of(host, place.path, driver.libcuda);
  }
  if (const Place place = loader.find("libnvidia-ml.so.1");
      !place.path.empty() && place.reached != "not by the loader") {
    driver.libnvidia_ml = host.realpath(place.path).value_or(place.path);
    driver.libnvidia_ml_version = version_in_name(driver.libnvidia_ml, "libnvidia-ml.so.");
  }
  for (const std::string& folder : loader.folders_of_variable())
    if (const auto path = path_join(folder, "libcuda.so"); has_segment(folder, "stubs") && host.exists(path))
      driver.stubs.push_back(path);
  find_compat(host, driver);
}

void find_mig_instances(const Host& host, Driver& driver) {
  const std::string root = "/proc/driver/nvidia/capabilities";
  // /capabilities/gpu0/mig/gi1/ci0: GPU instance 1 of GPU 0 and its compute instance 0.
  const auto names = [&](const std::string& folder, std::string_view prefix) {
    std::vector<std::string> found;
    if (const auto entries = host.list(folder))
      for (const DirEntry& entry : *entries)
        if (entry.kind == FileKind::Directory && entry.name.starts_with(prefix)) found.push_back(entry.name);
    return found;
  };
  for (const std::string& gpu : names(root, "gpu"))
    for (const std::string& slice : names(root + "/" + gpu + "/mig", "gi"))
      for (const std::string& part : names(root + "/" + gpu + "/mig/" + slice, "ci"))
        driver.mig.push_back(gpu + "/" + slice + "/" + part);
}

namespace {

std::string first_line(std::string text) {
  text.erase(std::min(text.find('\n'), text.size()));
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module 580.159.04 Release Build ..." -> "580.159.04". The first
// word of digits and dots: the open kernel module words its line in another way.
std::string version_in(const std::string& line) {
  for (std::size_t at = 0; at < line.size();) {
    const auto end = std::min(line.find(' ', at), line.size());
    const std::string word = line.substr(at, end - at);
    const auto digits = word.find_first_not_of("0123456789.");
    if (!word.empty() && digits == std::string::npos && word.find('.') != std::string::npos) return word;
    at = end + 1;
  }
  return "";
}

// "0x10de\n" of sysfs -> "10de"; "" where the file is not there.
std::string hex_id(const Host& host, const std::string& file) {
  const auto text = host.read_file(file, 64);
  if (!text) return "";
  const std::string line = first_line(*text);
  return line.starts_with("0x") ? line.substr(2) : line;
}

// /proc/driver/nvidia/gpus/ADDRESS/information: "Model: \t\t NVIDIA H200"
std::string model_name(const Host& host, const std::string& address) {
  const auto text = host.read_file("/proc/driver/nvidia/gpus/" + address + "/information", 1u << 14);
  if (!text) return "";
  const auto at = text->find("Model:");
  if (at == std::string::npos) return "";
  const auto start = text->find_first_not_of(" \t", at + 6);
  return start == std::string::npos ? "" : first_line(text->substr(start));
}

}  // namespace

// Present with a note where only libcuda is there: in a container whose /proc and /sys hide the kernel
// module, or in an unpacked image.
Probed<Driver> probe_driver(const Host& host) {
  Driver driver;
  find_driver_libraries(host, driver);
  if (host.is_live()) find_mig_instances(host, driver);
  driver.cuda_version = knowledge::cuda_of_jetson(jetson_release(host));
  for (const char* file : {"/sys/module/nvidia/version", "/proc/driver/nvidia/version"}) {
    const auto text = host.is_live() ? host.read_file(file, 1u << 14) : Result<std::string>(Error{});
    if (!text) continue;
    driver.version = version_in(first_line(*text));
    driver.source = file;
    if (!driver.version.empty()) return Probed<Driver>::of(driver);
  }
  driver.version = driver.source = "";
  // A stub proves nothing about a driver; any other libcuda was put here by one, or for one.
  if (!driver.libcuda.empty() && driver.libcuda_kind != "stub") {
    driver.version = driver.libcuda_version;
    driver.source = driver.libcuda;
    return {ProbeState::Present, message("no kernel module is visible; the version is that of libcuda"),
            driver};
  }
  return Probed<Driver>::absent(driver.libcuda.empty()
                                    ? message("no nvidia kernel module and no libcuda.so.1")
                                    : message("no nvidia kernel module; {} is a stub", driver.libcuda));
}

bool is_same_pci_device(const std::string& nvml, const std::string& sysfs) {
  return !sysfs.empty() && lowered(nvml).ends_with(lowered(sysfs));
}

void take_gpu_details(const std::map<std::string, std::string>& fields, Gpu& gpu) {
  constexpr const char* kKeys[] = {
#define DETAIL(key, label, unit) key,
#include "doctor/model/gpu_details.def"
#undef DETAIL
  };
  for (const char* key : kKeys) {
    const auto found = fields.find(key);
    if (found == fields.end()) continue;
    std::int64_t value = 0;
    const char* end = found->second.data() + found->second.size();
    const auto read = std::from_chars(found->second.data(), end, value);
    if (read.ec == std::errc() && read.ptr == end && value >= 0) gpu.details[key] = value;
  }
}

namespace {

// The GPU of a Jetson is a part of the chip and, before Thor, on no PCI bus: the device tree names the chip. A
// property of the tree is a list of texts, each with a null at its end.
std::optional<Gpu> gpu_of_device_tree(const Host& host) {
  const std::string tree = "/proc/device-tree/";
  const auto compatible = host.read_file(tree + "compatible", 1u << 12);
  if (!compatible) return std::nullopt;
  for (const std::string& word : split_nonempty(*compatible, std::string_view("\0", 1))) {
    const auto known = knowledge::known_tegra(word);
    if (!known) continue;
    const auto model = host.read_file(tree + "model", 1u << 12);
    Gpu gpu;
    gpu.name = model ? model->substr(0, model->find('\0')) : known->chip;
    gpu.sm = known->sm;
    gpu.sm_source = "device tree";
    gpu.details["integrated"] = 1;
    return gpu;
  }
  return std::nullopt;
}

}  // namespace

// Without NVML, the PCI bus and the device tree are all that a static program can see. The bus also lists GPUs
// that this container or this user may not use. WSL has no NVIDIA device on its bus, so "no GPU" would be wrong there.
Probed<std::vector<Gpu>> probe_gpus(const Host& host) {
  using Gpus = Probed<std::vector<Gpu>>;
  if (!host.is_live()) return Gpus::absent(message("the examined system is not running"));
  const std::string bus = "/sys/bus/pci/devices";
  const auto devices = host.list(bus);
  if (!devices) {
    if (const auto gpu = gpu_of_device_tree(host)) return Gpus::of({*gpu});
    if (host.exists("/dev/dxg"))
      return Gpus::failed(message("WSL: the GPU is behind /dev/dxg, which only NVML can query"));
    return devices.error().code == Errc::NotFound ? Gpus::absent(message("this machine has no PCI bus"))
                                                  : Gpus::failed(devices.error().message);
  }
  std::vector<Gpu> gpus;
  for (const DirEntry& device : *devices) {
    const std::string folder = bus + "/" + device.name;
    // Class 0x03xxxx is a display controller; an NVIDIA bridge or sound function is none.
    if (hex_id(host, folder + "/vendor") != "10de" || !hex_id(host, folder + "/class").starts_with("03"))
      continue;
    Gpu gpu;
    gpu.index = static_cast<unsigned>(gpus.size());
    gpu.pci_address = device.name;
    const std::string id = hex_id(host, folder + "/device");
    gpu.pci_device = "10de:" + id;
    gpu.name = model_name(host, device.name);
    if (const auto known = knowledge::known_gpu(id)) {
      gpu.sm = known->sm;
      gpu.sm_source = "pci-id table";
      if (gpu.name.empty()) gpu.name = known->chip;
    }
    gpus.push_back(std::move(gpu));
  }
  if (gpus.empty() && host.exists("/dev/dxg"))
    return Gpus::failed(message("WSL: the GPU is behind /dev/dxg, which only NVML can query"));
  if (gpus.empty())
    if (const auto gpu = gpu_of_device_tree(host)) return Gpus::of({*gpu});
  if (gpus.empty()) return Gpus::absent(message("no NVIDIA display device on the PCI bus"));
  return Gpus::of(gpus);
}

}  // namespace scankit::probes

// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "doctor/base/files.h"
#include "doctor/base/say.h"
#include "doctor/knowledge/gpus.h"
#include "doctor/probes/machine/driver_libraries.h"
#include "doctor/probes/machine/system.h"

namespace scankit {
namespace {

std::string first_line(std::string text) {
  text.erase(std::min(text.find('\n'), text.size()));
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.04  Release Build ..." -> "580.159.04"
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

Probed<Driver> probe_driver(const Host& host) {
  Driver driver;
  find_driver_libraries(host, driver);
  if (host.is_live()) find_mig_instances(host, driver);
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
    return {ProbeState::Present, say("no kernel module is visible; the version is that of libcuda"), driver};
  }
  return Probed<Driver>::absent(driver.libcuda.empty()
                                    ? say("no nvidia kernel module and no libcuda.so.1")
                                    : say("no nvidia kernel module; {} is a stub", driver.libcuda));
}

Probed<std::vector<Gpu>> probe_gpus(const Host& host) {
  using Gpus = Probed<std::vector<Gpu>>;
  if (!host.is_live()) return Gpus::absent(say("the examined system is not running"));
  const std::string bus = "/sys/bus/pci/devices";
  const auto devices = host.list(bus);
  if (!devices) {
    if (host.exists("/dev/dxg"))
      return Gpus::failed(say("WSL: the GPU is behind /dev/dxg, which only NVML can ask"));
    return devices.error().code == Errc::NotFound ? Gpus::absent(say("this machine has no PCI bus"))
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
    if (const auto known = known_gpu(id)) {
      gpu.sm = known->sm;
      gpu.sm_source = "pci-id table";
      if (gpu.name.empty()) gpu.name = known->chip;
    }
    gpus.push_back(std::move(gpu));
  }
  if (gpus.empty() && host.exists("/dev/dxg"))
    return Gpus::failed(say("WSL: the GPU is behind /dev/dxg, which only NVML can ask"));
  if (gpus.empty()) return Gpus::absent(say("no NVIDIA display device on the PCI bus"));
  return Gpus::of(gpus);
}

}  // namespace scankit

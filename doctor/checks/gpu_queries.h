// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "doctor/base/version.h"
#include "doctor/checks/snapshot_queries.h"

// What the checks of GPUs and drivers ask of a snapshot.
namespace scankit::checks {

// Whether CUDA_VISIBLE_DEVICES lets a process see the GPU. Unclear: its entries may mean this GPU
// or another one.
enum class Visibility { Visible, Hidden, Unclear };
// A GPU of the snapshot, which must outlive it.
struct SeenGpu {
  const Gpu* gpu;
  std::size_t index;  // in /gpus/value
  unsigned sm;        // 90; 0 where it is not known
  Visibility visibility;
  Message name() const;         // "GPU 0 (NVIDIA H200)"
  std::string pointer() const;  // "/gpus/value/0"
};
std::vector<SeenGpu> seen_gpus(const Snapshot& snapshot);
// CUDA_VISIBLE_DEVICES, taken to pieces as CUDA does; nothing if it is not set.
struct VisibleDevices {
  std::string text;                   // as it is set
  std::vector<std::string> accepted;  // entries that may name a GPU here
  Message refused;                    // the first that names none: it and all behind it are ignored
  std::string twice;                  // one that comes a second time: CUDA then accepts nothing at all
};
std::optional<VisibleDevices> visible_devices(const Snapshot& snapshot);

// The versions of the two halves of a driver. The user half is libcuda, which compiles PTX and
// unpacks images; with forward compatibility it is newer than the kernel half. Nothing if the
// version is not known.
std::optional<Version> kernel_driver(const Snapshot& snapshot);
std::optional<Version> user_driver(const Snapshot& snapshot);
// The newest CUDA release that the driver supports; nothing if it is not known. `or_newer`: at
// least that one.
struct SupportedCuda {
  Version cuda;
  bool or_newer = false;
  Evidence evidence;
};
std::optional<SupportedCuda> supported_cuda(const Snapshot& snapshot);

bool runs_on(const DeviceImage& image, unsigned gpu);
bool is_tegra(unsigned sm);                                      // the GPU of a Tegra chip (Jetson)
std::string image_name(const DeviceImage& image);                // "sm_90a", "PTX 80"
std::string image_list(const std::vector<DeviceImage>& images);  // each once
// Whether the driver can decompress the image; nothing if its version is not known.
std::optional<bool> driver_unpacks(const Snapshot& snapshot, const DeviceImage& image);
// Whether the driver reads cubins with the ABI version of this image.
enum class CubinAbi { Read, Refused, Unknown };
CubinAbi driver_reads_cubin_abi(const Snapshot& snapshot, const DeviceImage& image);

// The device code of torch or of one selected module.
struct DeviceCode {
  std::string subject, module, pointer;  // pointer: to the list of images
  const std::vector<DeviceImage>* images;
};
std::vector<DeviceCode> device_code(const Snapshot& snapshot);
// The repairs for a module that must get code for that GPU.
std::vector<Fix> rebuild_for(const Snapshot& snapshot, const DeviceCode& code, const SeenGpu& gpu,
                             const Message& otherwise);
// For Check::not_applicable: nothing here computes on a GPU. "" if something does.
Message no_use_of_gpus(const Snapshot& snapshot);

}  // namespace scankit::checks

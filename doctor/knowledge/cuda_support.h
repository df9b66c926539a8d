// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "doctor/base/version.h"

// Which GPU, nvcc and driver works with which CUDA release (gpus.yaml, nvcc_archs.yaml, drivers.yaml). Nothing
// means that the table does not say.
namespace scankit::knowledge {

// A compute capability without its dot, and the name of the chip: "90", "GH100".
struct KnownGpu {
  std::string sm, chip;
};
// `device_id` is the four hex digits of an NVIDIA device ("2335"). Nothing where the table does not hold it.
std::optional<KnownGpu> known_gpu(std::string_view device_id);
// The same for a chip with a GPU of its own, by its word in the device tree ("nvidia,tegra234").
std::optional<KnownGpu> known_tegra(std::string_view compatible);
// The CUDA release that the driver of a release of Jetson Linux supports: "12.6" for "36.4.3"; "" where the table
// does not say.
std::string cuda_of_jetson(std::string_view release);

// Whether the nvcc of a CUDA release ("12.4") compiles for an architecture ("90"); nothing where the table
// does not say.
std::optional<bool> nvcc_knows_arch(std::string_view release, std::string_view arch);

// The newest CUDA release that a driver of this version supports: 13.0 for 580.159.04. By the branch, so that
// it holds for Windows drivers, too. Nothing for one older than the table; `or_newer` for one of a branch
// beyond its end.
struct DriverCuda {
  Version cuda;
  bool or_newer = false;
};
std::optional<DriverCuda> cuda_of_driver(const Version& driver);
// The oldest driver on which a program built with this CUDA release starts: within a major any release runs
// on the driver of its first one.
std::optional<Version> minimum_driver(const Version& cuda);
// The driver of the first CUDA release whose nvcc compiles for this chip: 575.51.03 for sm_103, which CUDA 12.9
// introduced. Nothing where a table has no row, or the chip is older than all releases.
std::optional<Version> driver_of_first_cuda(unsigned sm);
// The CUDA release whose driver compiles this PTX: 13.0 for "9.0".
std::optional<Version> cuda_of_ptx(std::string_view isa);
// Which drivers read a cubin written for this chip with this ABI version (EI_ABIVERSION); nothing where the
// table has no row.
struct CubinAbiDrivers {
  Version reads;                         // from this one on
  std::string reads_text;                // as the table spells it: "580.65.06"
  std::optional<Version> refused_below;  // older ones do not; in between it is not known
};
std::optional<CubinAbiDrivers> drivers_of_cubin_abi(unsigned abi, unsigned sm);
// The first driver that reads images packed so ("zstd"); nothing where every driver does.
std::optional<Version> driver_that_unpacks(std::string_view packing);

}  // namespace scankit::knowledge

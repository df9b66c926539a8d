// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace scankit {

// One wheel, pinned twice: the file that the index delivers, and the files that it unpacks to.
struct WheelPin {
  std::string name, version, sha256;  // of the x86_64 wheel, as the index has it
  std::uint64_t size = 0;             // bytes
  // SHA-256 of what its RECORD says of the files below nvidia/: a line "PATH,SHA256\n" each, sorted. Not of
  // RECORD itself, to which installers add lines of their own.
  std::string files;
};

// A device compiler that comes as wheels, for machines that have none that fits. All wheels are of one
// release: nvcc's wheels do not pin each other.
struct WheelToolchain {
  std::string id;       // "nvrtc-12.9.86": the name of its folder in the cache
  bool nvcc = false;    // else NVRTC
  std::string version;  // "12.9"
  std::vector<WheelPin> wheels;
  std::vector<unsigned> archs;     // SM numbers, ascending
  std::string folder;              // where the library lies below the place of unpacking; of nvcc, its prefix
  std::uint64_t unpacked = 0;      // bytes on disk
  std::uint64_t download() const;  // bytes of all wheels
  std::string requirements() const;  // "nvidia-cuda-nvrtc-cu12==12.9.86"
};

// In the order in which a build tries them. The first makes sm_50 to sm_121, and for sm_90 and below the
// cubins that drivers of CUDA 12 read.
const std::vector<WheelToolchain>& wheel_toolchains();
const WheelToolchain& wheel_toolchain(const std::string& id);  // one of the table

}  // namespace scankit

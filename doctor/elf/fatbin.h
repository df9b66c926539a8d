// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "doctor/base/result.h"
#include "doctor/elf/image.h"

namespace scankit::elf {

// One device image of a `.nv_fatbin`. The layout is NVIDIA's
// and undocumented: doctor/elf/README.md has the table.
struct FatbinEntry {
  std::string kind;                       // "cubin", "ptx", "lto", or "kind N"
  unsigned sm = 0;                        // 90
  std::string specific;                   // "", "a", "f"
  unsigned isa_major = 0, isa_minor = 0;  // PTX
  std::string compression;                // "none", "lz4", "zstd"
  std::uint64_t offset = 0, size = 0;     // of the payload as stored, in the file
  std::uint64_t full_size = 0;            // when decompressed
};

// Every image in the containers of [offset, offset+size) of the file.
Result<std::vector<FatbinEntry>> read_fatbin(const FileBytes& file, std::uint64_t offset, std::uint64_t size);
// Every image that the file can run: section `.nv_fatbin`, in an object file `__nv_relfatbin` too, or, where
// the section table is gone, containers in the loaded segments.
Result<std::vector<FatbinEntry>> find_device_images(const Image& image);

// The payload, decompressed. Errc::Unsupported where it would be longer than `limit`.
Result<std::string> fatbin_payload(const FileBytes& file, const FatbinEntry& entry,
                                   std::uint64_t limit = 256u << 20);

// A bare LZ4 block, which does not state its own length. Errc::Malformed where `size` is not exactly that.
Result<std::string> unpack_lz4(std::string_view packed, std::uint64_t size);

// What an unpacked image says of itself.
struct CubinFacts {  // whether it is an "a" or "f" image, only the fatbin entry says: nvcc 13.0 writes the
                     // same e_flags
  unsigned sm = 0;
  unsigned abi_version = 0;  // 7 of CUDA 12 for sm <= 90; 8 of CUDA 13, and of 12.8 and 12.9 from sm_100 on
};
Result<CubinFacts> cubin_facts(std::string_view cubin);
// EI_ABIVERSION of a cubin, 7 or 8: from its first bytes,
// without unpacking the rest. 0 where it cannot be read.
unsigned cubin_abi(const FileBytes& file, const FatbinEntry& entry);
// The compiler that made an image, from its .note.nv.tkinfo; "" where it does not say.
struct CubinCompiler {
  std::string toolkit;  // "13.0"
  std::string version;  // "13.0.88", as nvcc and ptxas of that toolkit call themselves
};
CubinCompiler cubin_compiler(const FileBytes& file, const FatbinEntry& entry);
struct PtxFacts {
  unsigned isa_major = 0, isa_minor = 0, sm = 0;
  std::string specific;
};
Result<PtxFacts> ptx_facts(std::string_view text);

// What one kernel of a cubin takes, as its compiler wrote it down.
struct CubinKernel {
  std::string name;
  unsigned registers = 0;            // a thread's
  unsigned stack_bytes = 0;          // a thread's: local arrays, and registers that were spilled
  unsigned static_shared_bytes = 0;  // a block's, with the KiB that the system keeps from sm_90 on
  unsigned most_threads = 0;         // of a block, by __launch_bounds__; 0: not bounded
};
// Sorted by name. `cubin` is an unpacked image (fatbin_payload). The sections are NVIDIA's and undocumented:
// doctor/elf/README.md has the table. Used by validate/judge/kernel_use.cc and scankit_list_images.
Result<std::vector<CubinKernel>> cubin_kernels(std::string_view cubin);

}  // namespace scankit::elf

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/common/driver_plan.h"

// The device images that scankit appended to the module's file. Section .scankit.images contains the
// index. Each payload is at an absolute offset, or as far from it as strip or patchelf has moved its
// section, .nv_fatbin. Every number is checked against the file before it is used, and a payload's hash
// before the driver sees a byte: a truncated cubin crashes the driver.
namespace scankit::device {

inline constexpr uint32_t kImagePtx = 1;
inline constexpr uint32_t kImageCubin = 2;
inline constexpr char kImageMagic[9] = "SKIMAGE1";
inline constexpr size_t kImageNameBytes = 64;

// One entry of the index, as it is in the file: little-endian, 128 bytes. The section begins with
// kImageMagic (8 bytes), the number of entries and the size of an entry.
struct ImageEntry {
  uint32_t kind;
  uint32_t sm;  // 90
  uint32_t flags;
  uint32_t section_offset;  // where .nv_fatbin began when `offset` was taken; 0: unknown
  uint64_t offset, size;
  unsigned char sha256[32];
  char unit[kImageNameBytes];  // NUL-padded
};
static_assert(sizeof(ImageEntry) == 128);

struct ImageIndex {
  ImageEntry* entries = nullptr;  // malloc
  uint32_t count = 0;
  uint64_t file_size = 0;
};

// Reads and checks the whole index. On success the caller frees it with release_index.
bool read_image_index(int fd, ImageIndex* index, Message* message);
void release_index(ImageIndex* index);

// The rank-th best entry of `unit` for a device: cubins of its major version, highest minor first, none above
// the device's; then PTX, newest first, none above the device's. Null after the last.
const ImageEntry* select_image(const ImageIndex& index, const char* unit, int capability, int rank);

// The payload with a NUL behind it, which PTX needs, in memory from malloc(). Null where it is cut or does
// not have the hash of its entry.
void* read_image(int fd, const ImageEntry& entry, Message* message);

// "no device image of UNIT for sm_XX; this file holds ...: run scankit build --arch sm_XX"; always false.
bool no_image(const ImageIndex& index, const char* unit, int capability, Message* message);

}  // namespace scankit::device

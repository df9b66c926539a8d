// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stddef.h>

#include "kernels/common/driver_plan.h"

// The CUDA driver's functions, by dlopen: a module that linked libcuda.so.1 could not be imported without a
// driver. Types and values are those of cuda.h, which is not at hand where the module is built.
namespace scankit::device {

using CudaResult = int;  // CUresult; 0 is CUDA_SUCCESS
using CudaDevice = int;
using CudaHandle =
    struct CudaHandleOpaque*;  // CUcontext, CUmodule, CUlibrary, CUkernel, CUfunction, CUstream

inline constexpr CudaResult kCudaNotInitialized = 3;
inline constexpr CudaResult kCudaUnsupportedPtx = 222;

inline constexpr int kAttributeMultiprocessors = 16;
inline constexpr int kAttributeMajor = 75;
inline constexpr int kAttributeMinor = 76;
inline constexpr int kAttributeSharedPerMultiprocessor = 81;
inline constexpr int kAttributeSharedPerBlockOptin = 97;
inline constexpr int kFunctionStaticShared = 1;
inline constexpr int kFunctionMaxDynamicShared = 8;

// Whether launches of a plan may overlap (Launch::follows), by programmatic dependent launch: with a driver of
// CUDA 12.3, from which on graphs can capture it too, and where every image has its waiting in it.
// oldest_image: the least architecture that an image was built for, 90 for sm_90.
inline bool may_overlap(bool has_function, int driver_version, int oldest_image) {
  return has_function && driver_version >= 12030 && oldest_image >= 90;
}

// CUlaunchAttribute and CUlaunchConfig.
struct LaunchAttribute {
  int id;  // 6: programmatic stream serialization
  alignas(8) union {
    int allowed;
    char room[64];
  } value;
};
struct LaunchConfig {
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
  CudaHandle stream;
  const LaunchAttribute* attributes;
  unsigned attribute_count;
};

struct DriverApi {
  CudaResult (*init)(unsigned flags);
  CudaResult (*driver_version)(int*);
  CudaResult (*device_get)(CudaDevice*, int ordinal);
  CudaResult (*device_attribute)(int*, int attribute, CudaDevice);
  CudaResult (*primary_retain)(CudaHandle*, CudaDevice);
  CudaResult (*context_device)(CudaDevice*);
  CudaResult (*context_push)(CudaHandle);
  CudaResult (*context_pop)(CudaHandle*);
  CudaResult (*module_load)(CudaHandle*, const void* image);
  CudaResult (*module_function)(CudaHandle*, CudaHandle module, const char* name);
  CudaResult (*function_read)(int*, int attribute, CudaHandle function);
  CudaResult (*function_attribute)(CudaHandle function, int attribute, int value);
  CudaResult (*launch)(CudaHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                       unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                       CudaHandle stream, void** parameters, void** extra);
  CudaResult (*error_name)(CudaResult, const char**);
  CudaResult (*error_string)(CudaResult, const char**);
  // CUDA 11.8 on; null before.
  CudaResult (*launch_with)(const LaunchConfig*, CudaHandle function, void** parameters, void** extra);
  // CUDA 12.0 on; null before.
  CudaResult (*library_load)(CudaHandle*, const void* image, int* jit_options, void** jit_values,
                             unsigned jit_count, int* options, void** values, unsigned count);
  CudaResult (*library_kernel)(CudaHandle*, CudaHandle library, const char* name);
  CudaResult (*kernel_function)(CudaHandle*, CudaHandle kernel);
};

// Null, with the message, where there is no usable driver. The library stays loaded.
const DriverApi* driver_api(Message* message);

// "what: CUDA_ERROR_X (700): text"; always false.
bool driver_failed(const DriverApi& api, CudaResult result, const char* what, Message* message);

// Device state of a module that launches through the CUDA driver: one primary context and one set of loaded
// kernels per (device, process). Nothing here touches the driver before device_prepare, which
// threads may call at once.

// At import. `image_fd` is the module's own file, opened then and kept: a file replaced later holds another
// build's images. It is never closed here. -1: the module has no images (message at first use).
void device_register(int image_fd, const KernelName* kernels, int kernel_count);

// Loads libcuda.so.1, retains the device's primary context, checks and loads every image for it. Cheap (a
// table look-up) from the second call on. False: `message` says what, where and what next.
bool device_prepare(int device, DeviceFacts* facts, Message* message);

// Makes the device's primary context current unless one of the same device is (a green context stays). Needs
// a successful device_prepare(device). Enter before allocating outputs and launching; leave afterwards on
// every path.
struct Guard {
  bool pushed = false;
};
bool guard_enter(int device, Guard* guard, Message* message);
void guard_leave(Guard* guard);

// Launches the plan on `stream` (a CUstream; null is the legacy default stream). Inside a guard. Fills the
// workspace pointers itself.
bool device_run(Plan* plan, int device, void* stream, void* workspace, Message* message);

// The device images that scankit appended to the module's file. Section .scankit.images contains the
// index. Each payload is at an absolute offset, or as far from it as strip or patchelf has moved its
// section, .nv_fatbin. Every number is checked against the file before it is used, and a payload's hash
// before the driver sees a byte: a truncated cubin crashes the driver. A packed image is unpacked here and
// not by the driver: that needs no certain driver, and the hash is of a third of the bytes.

inline constexpr uint32_t kImagePtx = 1;
inline constexpr uint32_t kImageCubin = 2;
inline constexpr char kImageMagic[9] = "SKIMAGE1";
inline constexpr size_t kImageNameBytes = 64;

// One entry of the index, as it is in the file: little-endian, 128 bytes. The section begins with
// kImageMagic (8 bytes), the number of entries and the size of an entry.
struct ImageEntry {
  uint32_t kind;
  uint32_t sm;              // 90
  uint32_t full_size;       // of the image, where the payload is an LZ4 block; 0: the payload is the image
  uint32_t section_offset;  // where .nv_fatbin began when `offset` was taken; 0: unknown
  uint64_t offset, size;
  unsigned char sha256[32];
  char unit[kImageNameBytes];  // NUL-padded
};
static_assert(sizeof(ImageEntry) == 128);
// Bytes of what read_image() gives, but for the NUL.
inline uint64_t image_size(const ImageEntry& entry) {
  return entry.full_size != 0 ? entry.full_size : entry.size;
}

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

// The image, unpacked, with a NUL behind it, which PTX needs, in memory from malloc(). Null where its payload
// is cut, does not have the hash of its entry, or is not what its entry says.
void* read_image(int fd, const ImageEntry& entry, Message* message);

// "no device image of UNIT for sm_XX; this file holds ...: run scankit build --arch sm_XX"; always false.
bool no_image(const ImageIndex& index, const char* unit, int capability, Message* message);

}  // namespace scankit::device

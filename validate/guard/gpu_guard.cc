// SPDX-License-Identifier: Apache-2.0
// What torch.cuda.memory.CUDAPluggableAllocator calls in the child of the small cases:
// each allocation on the GPU is one of the driver's own and lies between two bands. As
// on the CPU, bands and fresh memory hold 0xff: NaN in every dtype. The bands are
// copied back and looked at when memory is freed and whenever the harness asks.
//
// Slow (an allocation and a free of the driver's each time, and a wait for the whole context), and nothing
// that a graph could capture: neither for timing nor for the cases inside a graph.
#include <dlfcn.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "validate/guard/guard.h"

namespace {

using Address = unsigned long long;
constexpr std::size_t kAlignment = 512;  // of what torch's own allocator returns
constexpr std::size_t kLeastBand = 1024, kMostBand = 65536;
constexpr unsigned char kFill = 0xff;
constexpr int kMostBlocks = 1 << 15, kMostDevices = 64;

// The functions of libcuda.so.1 that are needed. They are looked up at run time: the guard is preloaded
// into every child, also on machines without a driver.
struct Driver {
  int (*init)(unsigned);
  int (*device)(int*, int);
  int (*current)(void**);
  int (*make_current)(void*);
  int (*primary)(void**, int);
  int (*wait)();
  int (*allocate)(Address*, std::size_t);
  int (*free)(Address);
  int (*fill)(Address, unsigned char, std::size_t, void*);
  int (*copy)(void*, Address, std::size_t);
} driver;

struct Wanted {
  const char* name;
  void** place;
};
const Wanted kWanted[] = {
    {"cuInit", reinterpret_cast<void**>(&driver.init)},
    {"cuDeviceGet", reinterpret_cast<void**>(&driver.device)},
    {"cuCtxGetCurrent", reinterpret_cast<void**>(&driver.current)},
    {"cuCtxSetCurrent", reinterpret_cast<void**>(&driver.make_current)},
    {"cuDevicePrimaryCtxRetain", reinterpret_cast<void**>(&driver.primary)},
    {"cuCtxSynchronize", reinterpret_cast<void**>(&driver.wait)},
    {"cuMemAlloc_v2", reinterpret_cast<void**>(&driver.allocate)},
    {"cuMemFree_v2", reinterpret_cast<void**>(&driver.free)},
    {"cuMemsetD8Async", reinterpret_cast<void**>(&driver.fill)},
    {"cuMemcpyDtoH_v2", reinterpret_cast<void**>(&driver.copy)},
};

// One allocation: `base` is what the driver returned, and [begin, begin + size) is what torch got. The
// bands are [base, begin) and the `band` bytes after the last one of the tensor.
struct Block {
  Address begin, base;
  std::size_t size, band;
  void* stream;
};
Block blocks[kMostBlocks];
int count = 0;
void* contexts[kMostDevices];
ScankitDamage remembered;  // of a block that was freed meanwhile
bool has_remembered = false;
ScankitGpuTrouble trouble;
unsigned char seen[kMostBand];  // a band as it came back

bool held = false;

bool failed(int status) {
  if (status != 0 && trouble.status == 0) trouble.status = status;
  return status != 0;
}

// Makes sure that this thread has a context. torch's autograd starts threads of its own, and this may be
// the first use of the device; torch uses the primary context, so that this does, too.
bool in_context(int device) {
  void* context = nullptr;
  if (!driver.init || failed(driver.init(0)) || failed(driver.current(&context))) return false;
  if (context != nullptr) return true;
  if (device < 0 || device >= kMostDevices) return false;
  int handle = 0;
  if (contexts[device] == nullptr &&
      (failed(driver.device(&handle, device)) || failed(driver.primary(&contexts[device], handle))))
    return false;
  return !failed(driver.make_current(contexts[device]));
}

// An eighth of the tensor, within limits: an index error often misses by a share of an extent.
std::size_t band_of(std::size_t size) {
  std::size_t band = size / 8;
  band = band < kLeastBand ? kLeastBand : band > kMostBand ? kMostBand : band;
  return (band + kAlignment - 1) / kAlignment * kAlignment;
}

// The place, inside the band, of the changed byte nearest to the tensor; -1 where no byte changed or the
// band could not be read.
std::ptrdiff_t changed(Address band, std::size_t size, bool in_front) {
  if (failed(driver.copy(seen, band, size))) return -1;
  for (std::size_t i = 0; i < size; ++i) {
    const std::size_t at = in_front ? size - 1 - i : i;
    if (seen[at] != kFill) return static_cast<std::ptrdiff_t>(at);
  }
  return -1;
}

// Whether a band of this block was written, and where, relative to the tensor's first byte. The caller has
// waited for the GPU. The bands are filled again, so that damage is reported once.
bool damaged(const Block& block, ScankitDamage* damage) {
  const Address end = block.begin + block.size;
  const std::ptrdiff_t behind = changed(end, block.band, false),
                       before = changed(block.base, block.band, true);
  if (behind < 0 && before < 0) return false;
  const auto size = static_cast<std::ptrdiff_t>(block.size), band = static_cast<std::ptrdiff_t>(block.band);
  *damage = {static_cast<std::uintptr_t>(block.begin), block.size,
             behind >= 0 ? size + behind : before - band};
  failed(driver.fill(block.base, kFill, block.band, block.stream));
  failed(driver.fill(end, kFill, block.band, block.stream));
  return true;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int scankit_gpu_guard_start(const char** missing) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  *missing = "libcuda.so.1";
  if (library == nullptr) return 0;
  for (const Wanted& wanted : kWanted) {
    *missing = wanted.name;
    *wanted.place = dlsym(library, wanted.name);
    if (*wanted.place == nullptr) return driver.init = nullptr, 0;
  }
  *missing = nullptr;
  return 1;
}

// torch keeps a table of the pointers that it got, so that an empty tensor needs a block of its own. Null
// where there is no memory: torch does not check for that, so that the harness asks (`trouble`).
__attribute__((visibility("default"))) void* scankit_gpu_allocate(std::ptrdiff_t wanted, int device,
                                                                  void* stream) {
  const Lock lock(held);
  const auto size = static_cast<std::size_t>(wanted);
  const std::size_t band = band_of(size);
  // The tensor begins aligned, and the band behind it begins right after its last byte. The allocation is
  // rounded up to the alignment, which leaves room for both bands.
  const std::size_t whole = (size + kAlignment - 1) / kAlignment * kAlignment;
  Block block{0, 0, size, band, stream};
  if (wanted < 0 || count == kMostBlocks || !in_context(device)) {
    trouble.refused = size;
    return nullptr;
  }
  if (driver.allocate(&block.base, whole + 2 * band) != 0) {
    trouble.refused = size;
    return nullptr;
  }
  block.begin = block.base + band;
  if (failed(driver.fill(block.base, kFill, whole + 2 * band, stream))) {
    driver.free(block.base);
    return nullptr;
  }
  blocks[count++] = block;
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(block.begin));
}

__attribute__((visibility("default"))) void scankit_gpu_free(void* pointer, std::ptrdiff_t, int device,
                                                             void*) {
  if (pointer == nullptr) return;
  const Lock lock(held);
  const auto begin = static_cast<Address>(reinterpret_cast<std::uintptr_t>(pointer));
  int at = count - 1;  // the newest die first
  while (at >= 0 && blocks[at].begin != begin) --at;
  if (at < 0) {
    ++trouble.unknown_frees;
    return;
  }
  // Waits for the whole context: any stream may still use the memory. torch's own allocator would keep the
  // block for its stream instead.
  if (in_context(device)) {
    ScankitDamage damage;
    if (!failed(driver.wait()) && damaged(blocks[at], &damage) && !has_remembered) {
      remembered = damage;
      has_remembered = true;
    }
    failed(driver.free(blocks[at].base));
  }
  blocks[at] = blocks[--count];
}

__attribute__((visibility("default"))) int scankit_gpu_guard_damaged(ScankitDamage* damage) {
  const Lock lock(held);
  if (has_remembered) {
    *damage = remembered;
    has_remembered = false;
    return 1;
  }
  if (count == 0 || !in_context(0) || failed(driver.wait())) return 0;
  for (int i = 0; i < count; ++i)
    if (damaged(blocks[i], damage)) return 1;
  return 0;
}

__attribute__((visibility("default"))) ScankitGpuTrouble scankit_gpu_guard_trouble() {
  const Lock lock(held);
  const ScankitGpuTrouble now = trouble;
  trouble = {};
  return now;
}

}  // extern "C"

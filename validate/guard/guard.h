// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

// The interface of the preloaded library. harness/guard.py and harness/gpu_guard.py read it by ctypes, so
// that the layout of the structs must match theirs.
extern "C" {
struct ScankitDamage {
  std::uintptr_t address;  // of the allocation as its owner has it
  std::size_t size;        // bytes that were asked for
  std::ptrdiff_t
      offset;  // of a byte that was written: negative in front of the allocation, else size or more
};
// 1 and *damage where bytes around an allocation were written since the last call; the bands of that
// allocation are then filled again. Call it until it returns 0.
int scankit_guard_damaged(ScankitDamage* damage);
// Whether what is allocated from now on has bands; it has from the start. Off while something is timed.
void scankit_guard_bands(int on);

// The most fp32 multiply-adds a second of the core that this thread runs on, in `seconds`; 0: it has no such
// instruction. Here because this library is the one that the harness has.
double scankit_multiply_adds(double seconds);

// The same on the GPU (gpu_guard.cc). Must be called before the functions below. 1; or 0 and the library
// or function that the driver lacks.
int scankit_gpu_guard_start(const char** missing);
// For CUDAPluggableAllocator.
void* scankit_gpu_allocate(std::ptrdiff_t size, int device, void* stream);
void scankit_gpu_free(void* pointer, std::ptrdiff_t size, int device, void* stream);
// As scankit_guard_damaged; waits for all that was launched.
int scankit_gpu_guard_damaged(ScankitDamage* damage);
// What went wrong since the last call, besides damage.
struct ScankitGpuTrouble {
  std::size_t refused;        // bytes of an allocation that was not to be had; 0: none
  std::size_t unknown_frees;  // of what is not allocated: a second free
  std::int64_t status;        // the first error of the driver, else 0
};
ScankitGpuTrouble scankit_gpu_guard_trouble();
}

// A spin lock over a flag. Not a mutex of libpthread, which may allocate in old releases, and this is used
// inside malloc. Waits are short. The guard and the GPU's allocator have a flag each.
class Lock {
 public:
  explicit Lock(bool& held) : held_(held) {
    while (__atomic_test_and_set(&held_, __ATOMIC_ACQUIRE)) wait();
  }
  ~Lock() { __atomic_clear(&held_, __ATOMIC_RELEASE); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  static void wait() {
#ifdef __aarch64__
    __asm__ volatile("yield");
#else
    __builtin_ia32_pause();
#endif
  }
  bool& held_;
};

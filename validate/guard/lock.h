// SPDX-License-Identifier: Apache-2.0
#pragma once

// A spin lock over a flag. Not a mutex of libpthread, which may allocate in old releases, and this is used
// inside malloc. Waits are short. The guard and the GPU's allocator have a flag each.
class Lock {
 public:
  explicit Lock(bool& held) : held_(held) {
    while (__atomic_test_and_set(&held_, __ATOMIC_ACQUIRE)) __builtin_ia32_pause();
  }
  ~Lock() { __atomic_clear(&held_, __ATOMIC_RELEASE); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  bool& held_;
};

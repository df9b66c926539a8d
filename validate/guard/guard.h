// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>

// What harness/guard.py reads by ctypes.
extern "C" {
struct ScankitDamage {
  std::uintptr_t address;  // of the allocation as its owner has it
  std::size_t size;        // bytes that were asked for
  std::ptrdiff_t
      offset;  // of a byte that was written: negative in front of the allocation, else size or more
};
// 1 and *damage where bytes around an allocation were written since the last call; then the bands are whole
// again. Call until 0.
int scankit_guard_damaged(ScankitDamage* damage);
// Whether what is allocated from now on has bands; it has from the start. Off while something is timed.
void scankit_guard_bands(int on);
}

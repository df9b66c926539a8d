// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>

#include "kernels/selective_scan/cuda/bank_rule.h"

// What the lanes of a warp touch in shared memory, of device code that runs on the CPU (emulator.h). The
// compiler calls us at each access: the code is compiled with -fsanitize=thread and without its library, not
// optimized, so that an access is what the source says (a float4 is one of 16 bytes).
namespace scankit::selective_scan {

struct Recorded {
  long requests = 0;  // instructions of a warp
  Wavefronts wavefronts;
};

// Accesses to [begin, begin + bytes) are recorded from now on, those of the thread that `thread` names
// (-1: of none).
void record_shared(const void* begin, std::size_t bytes, int (*thread)());
// The thread has come to a barrier: what lanes do before and behind it is never one instruction.
void record_barrier();
// What was recorded since, and no more recording. Accesses of the lanes of a warp are one instruction where
// they have the same place in the code, by the same calls, for the same time since the last barrier.
Recorded recorded();

}  // namespace scankit::selective_scan

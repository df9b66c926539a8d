// SPDX-License-Identifier: Apache-2.0
#pragma once
// The bf16 kernels of both directions and the reduction as device code on the CPU (emulator.h), for a test
// that includes this before anything else of the kernels.
#define SCANKIT_EMULATED
#include "kernels/selective_scan/cuda/emulator.h"

#define SCANKIT_FORWARD
#define SCANKIT_BACKWARD
#define SCANKIT_REDUCE
#define SCANKIT_DTYPE BF16
namespace scankit::selective_scan {
alignas(16) static float memory[57 << 10];  // a block's shared memory, as the kernels declare it
}
#include "kernels/selective_scan/cuda/entry.cuh"
//
#include "kernels/selective_scan/cuda/emulated_launch_test.h"

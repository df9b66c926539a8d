// SPDX-License-Identifier: Apache-2.0
#pragma once
// The plain kernels of a plan on the CPU. Included behind entry.cuh, by a test that has declared `memory`, a
// block's shared memory.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>

#include "kernels/selective_scan/cuda/choice.h"
#include "kernels/selective_scan/cuda/launch_parts.h"

namespace scankit::selective_scan {

template <class Arguments>
std::function<void()> entry_of(void (*kernel)(Arguments), const device::Launch& launch) {
  Arguments arguments;
  EXPECT_EQ(launch.argument_bytes, sizeof arguments);
  std::memcpy(&arguments, launch.argument, sizeof arguments);
  return [kernel, arguments] { kernel(arguments); };
}

// Shared memory is NaN when a block begins.
inline void emulate(const device::Launch& launch) {
  const std::string symbol = kCudaKernels[launch.kernel].symbol;
  ASSERT_LE(launch.shared_bytes, sizeof memory);
  std::function<void()> body;
#define FORWARD_VARIANT(name, ...) \
  if (symbol == "scankit_forward_" #name) body = entry_of(scankit_forward_##name, launch);
#define BACKWARD_VARIANT(name, ...) \
  if (symbol == "scankit_backward_" #name) body = entry_of(scankit_backward_##name, launch);
#include "kernels/selective_scan/cuda/variants.def"
  if (symbol == "scankit_forward_ends") body = entry_of(scankit_forward_ends, launch);
  if (symbol == "scankit_backward_ends") body = entry_of(scankit_backward_ends, launch);
#ifdef SCANKIT_CONSTANT
  if (symbol == "scankit_constant_forward") body = entry_of(scankit_constant_forward, launch);
  if (symbol == "scankit_constant_backward") body = entry_of(scankit_constant_backward, launch);
  if (symbol == "scankit_constant_forward_ends") body = entry_of(scankit_constant_forward_ends, launch);
  if (symbol == "scankit_constant_backward_ends") body = entry_of(scankit_constant_backward_ends, launch);
#endif
  if (symbol == "scankit_reduce") body = entry_of(scankit_reduce, launch);
  ASSERT_TRUE(body) << symbol;
  for (unsigned block = 0; block < launch.grid_x * launch.grid_y; ++block) {
    blockIdx.x = block % launch.grid_x, blockIdx.y = block / launch.grid_x;
    blockDim.x = launch.block_x;
    std::memset(memory, 0xff, sizeof memory);
    emulator::Block(launch.block_x, body, emulator::Block::next_order()).run();
  }
}

}  // namespace scankit::selective_scan

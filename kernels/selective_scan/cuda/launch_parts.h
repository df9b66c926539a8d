// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stdio.h>
#include <string.h>

#include "kernels/selective_scan/cuda/arguments.h"
#include "kernels/selective_scan/cuda/launch.h"

// What the plans of the plain and of the general kernels are made of.
namespace scankit::selective_scan {

inline constexpr const char* kTooManyBlocks = "batch times channels is too large for one launch";

inline size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

// Takes `floats` floats of the workspace, 256-byte aligned (the kernels need 16), and returns their
// byte offset.
inline Index reserve(device::Plan* plan, Index floats) {
  const size_t offset = plan->workspace_bytes;
  plan->workspace_bytes = round_up(offset + static_cast<size_t>(floats) * sizeof(float), 256);
  return static_cast<Index>(offset);
}

// Appends a launch. grid.x is `blocks`, which the caller has checked to be at most 2^31 - 1; grid.y is
// `rows`. shared: bytes of dynamic shared memory.
template <class Arguments>
void add_launch(device::Plan* plan, int kernel, Index blocks, int threads, int shared,
                const Arguments& arguments, Index rows = 1) {
  static_assert(sizeof(Arguments) <= device::kArgumentCapacity);
  device::Launch& launch = plan->launches[plan->launch_count++];
  launch.kernel = kernel;
  launch.grid_x = static_cast<unsigned>(blocks);
  launch.grid_y = static_cast<unsigned>(rows);
  launch.block_x = static_cast<unsigned>(threads);
  launch.shared_bytes = static_cast<unsigned>(shared);
  launch.argument_bytes = sizeof arguments;
  memcpy(launch.argument, &arguments, sizeof arguments);
}

// Says what cannot be run and what to do instead; returns false.
inline bool refuse(device::Message* message, const char* what, const char* next) {
  snprintf(message->text, sizeof message->text, "selective_scan: %s: %s", what, next);
  return false;
}

// Appends a sum of the reduction, to rows side by side; without blocks, and so without effect, where out
// is null. The caller may change what it returns.
inline ReduceJob& add_job(ReduceArguments* arguments, int* count, Index source, Index slabs, Index stride,
                          Index rows, Index length, Index pitch, void* out, DType type = DType::F32) {
  const Index blocks = out == nullptr ? 0 : (rows * (pitch / 4) + kReduceThreads - 1) / kReduceThreads;
  ReduceJob& job = arguments->jobs[*count];
  job = {source, slabs, stride, rows, length, pitch, out, type, false, length};
  arguments->first_block[*count + 1] = arguments->first_block[*count] + blocks;
  ++*count;
  return job;
}

// Whether the states have to be computed again. With one tile none are read: it starts from the
// initial state.
inline bool takes_states(const Backward& b) {
  return b.x.data == nullptr && b.common.length > kStateInterval;
}

// By the general kernels, into an empty plan.
bool add_general_forward(const Forward& forward, bool x_in_workspace, device::Plan* plan,
                         device::Message* message);
bool plan_general_backward(const Backward& backward, const device::DeviceFacts& facts, device::Plan* plan,
                           device::Message* message);

}  // namespace scankit::selective_scan

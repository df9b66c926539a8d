// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/causal_conv1d/params.h"

// The convolution on the CPU. Each returns null, or what went wrong.
namespace scankit::causal_conv1d {

const char* cpu_forward(const Forward& conv);
const char* cpu_backward(const Backward& conv);
const char* cpu_update(const Update& conv);

// What follows is between conv.cc and the object of each instruction set: functions of one task.

// A task is one tile of `lanes` channels of one batch and one segment of the steps. The segments depend on
// the shape alone, so that the sums of dweight and dbias do.
inline constexpr int kSegmentSteps = 1024;

struct TaskGrid {
  int tiles, segments;  // of one batch
  int task_tile(int task) const { return task % tiles; }
  int task_segment(int task) const { return task / tiles % segments; }
  int task_batch(int task) const { return task / tiles / segments; }
};

// Where the backward's tasks write their sums: (batch, segments, width + 1, tiles * lanes). The last
// row is dbias.
struct Slabs {
  float* data;
};

struct KernelSet {
  int lanes;
  void (*forward)(const Forward& conv, const TaskGrid& grid, int task);
  void (*backward)(const Backward& conv, const TaskGrid& grid, const Slabs& slabs, int task);
  void (*update)(const Update& conv, const TaskGrid& grid, int task);
};

const KernelSet& avx512_kernels();
const KernelSet& avx2_kernels();
const KernelSet& portable_kernels();

}  // namespace scankit::causal_conv1d

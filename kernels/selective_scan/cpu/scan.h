// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/selective_scan/params.h"

// Selective scan on the CPU: what the bindings call. Sequential in length, kLanes channels a vector, one task
// a channel tile; a task's arithmetic does not depend on which thread runs it, so neither do the results.
namespace scankit::selective_scan {

// Null, or why it failed (no memory). A backward without x computes the states again.
const char* cpu_forward(const Forward& scan);
const char* cpu_backward(const Backward& scan);
const char* cpu_update(const Update& step);

// What follows is between scan.cc and the object of each instruction set: functions of one task.

// How a scan is divided. A task of the forward is one tile: `lanes` channels of one sequence and group. A
// task of the backward is a run of `tiles_per_task` tiles of one sequence and group, which share a slab of
// dB and dC. Sequences are those of packed rows, else the entries of the batch.
struct TaskGrid {
  int lanes, tiles, tiles_per_task, runs;  // tiles and runs: of one sequence and group
};

// Where the backward's tasks add up. The slabs are summed in a fixed order afterwards, so that results
// do not depend on the threads. With one run (for dB and dC) or one sequence (for the others) they are
// the results themselves.
struct Slabs {
  float *dB, *dC;                // (runs, batch, groups, states, length), or as dA where B or C is constant
  float *dA, *dD, *ddelta_bias;  // (sequences, dim, states), (sequences, dim) twice
};

// The functions of one instruction set. `task` counts tiles or runs first, then groups, then sequences.
struct KernelSet {
  const char* name;
  int lanes;
  long (*forward_floats)(int numbers);  // scratch of one thread, 64-byte aligned; fp32 numbers of the states
  long (*backward_floats)(int numbers);
  long (*update_floats)(int states);
  void (*forward)(const Forward& scan, const TaskGrid& grid, int task, float* scratch);
  void (*backward)(const Backward& scan, const TaskGrid& grid, const Slabs& slabs, int task, float* scratch);
  void (*update)(const Update& step, const TaskGrid& grid, int task, float* scratch);  // as the forward
};

const KernelSet& avx512_kernels();
const KernelSet& avx2_kernels();
const KernelSet& portable_kernels();

// The selective scan of params.h in double: for gradcheck and as a reference, plain and on one thread. Its
// backward is explicit and linear in the length.

// A tensor of doubles. Strides are in doubles, for complex numbers too, whose two parts are adjacent. data
// is null where the tensor is absent.
struct Array64 {
  double* data;
  Index stride[3];
};
// B, C and their gradients: (batch, groups, states, steps), or (dim, states) where constant.
struct Projection64 {
  double* data;
  bool constant;
  Index batch_stride;
  Index row_stride;  // of groups, or of channels where constant
  Index state_stride, step_stride;
};

// The inputs that forward and backward share; their meaning is that of Common in params.h.
struct Scan64 {
  int batch, dim, length, states, groups, sequences;
  bool softplus, complex;
  const int* cu_seqlens;  // null: each batch entry is a sequence; else batch is 1
  Array64 u, delta, z;    // (batch, dim, length)
  Array64 A;              // (dim, states)
  Projection64 B, C;
  Array64 D, delta_bias;  // (dim)
  Array64 initial_state;  // (sequences, dim, states)
};

struct Forward64 {
  Scan64 scan;
  Array64 out, out_z, last_state;
};

// All results are zero when the backward begins.
struct Backward64 {
  Scan64 scan;
  Array64 dout, dlast_state;
  Array64 du, ddelta, dz, dA, dD, ddelta_bias, dinitial_state;
  Projection64 dB, dC;
};

// Null, or why it failed.
const char* forward_fp64(const Forward64& forward);
const char* backward_fp64(const Backward64& backward);

}  // namespace scankit::selective_scan

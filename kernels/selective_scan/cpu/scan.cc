// SPDX-License-Identifier: Apache-2.0
#include "kernels/selective_scan/cpu/scan.h"

#include <stdlib.h>
#include <string.h>

#include <initializer_list>

#include "kernels/common/cpu.h"

// Divides a scan into tasks, gives each thread its scratch memory, and sums what the backward's tasks
// left. The arithmetic is in the files of the instruction sets.
namespace scankit::selective_scan {
namespace {

const KernelSet& kernels_of(CpuLevel level) {
  switch (level) {
#ifdef __x86_64__
    case CpuLevel::Avx512:
      return avx512_kernels();
    case CpuLevel::Avx2:
      return avx2_kernels();
#endif
    default:
      break;
  }
  return portable_kernels();
}

const KernelSet& kernels() { return kernels_of(chosen_cpu_level()); }

// Memory for the length of one call. Contents are undefined.
struct Memory {
  float* data = nullptr;
  ~Memory() { free(data); }
  // Floats from 64-byte aligned memory that nobody reads before writing.
  bool take(size_t floats) {
    void* memory = nullptr;
    if (posix_memalign(&memory, 64, (floats + 16) * sizeof(float)) != 0) return false;
    data = (float*)memory;
    return true;
  }
};
constexpr const char* kNoMemory = "no memory for the scan's workspace on the CPU";

// Waking another thread takes about 20 us, in which a core computes 20,000 states of one step. `states`
// counts those of all channels and steps.
int threads_for(double states, int tasks) {
  if (states < 40'000) return 1;
  const int limit = thread_limit();
  return limit < tasks ? limit : tasks;
}
int threads_for(const Common& c, int tasks) {
  return threads_for((double)c.batch * c.dim * (double)c.length * numbers_of(c), tasks);
}

int divide_up(int a, int b) { return (a + b - 1) / b; }
long round_up(long floats) { return (floats + 15) / 16 * 16; }
Index projection_floats(const Common& c) { return (Index)c.batch * c.groups * numbers_of(c) * c.length; }
Index matrix_floats(const Common& c) { return (Index)c.dim * numbers_of(c); }

// The number of slabs depends on the shape only, never on the number of threads, which would otherwise
// show in the rounding of dB and dC. There are enough tasks for many cores, but no more slab memory than a
// few activations take: one slab is as large as 2 N channels.
TaskGrid backward_grid(const Common& c, int lanes) {
  const int tiles = divide_up(c.dim / c.groups, lanes);
  int runs = divide_up(64, sequences_of(c) * c.groups);
  const int bound = c.dim / c.groups / (2 * c.states);
  if (runs > 8 && runs > bound) runs = bound > 8 ? bound : 8;
  if (runs > tiles) runs = tiles;
  const int tiles_per_task = divide_up(tiles, runs);
  return {lanes, tiles, tiles_per_task, divide_up(tiles, tiles_per_task)};
}

// What run_tasks() passes to a task as its context.
struct ForwardJob {
  const Forward& scan;
  const KernelSet& set;
  TaskGrid grid;
  float* scratch;
  long floats;  // of one thread
};

struct BackwardJob {
  const Backward& scan;
  const KernelSet& set;
  TaskGrid grid;
  Slabs slabs;
  float* scratch;
  long floats;
};

// to[i] = the sum of `count` slabs of `size` floats, in order. `to` may be the first slab. Without slabs,
// zeros are written.
struct Reduction {
  const float* slabs;
  float* to;
  Index count, size;
};
// Elements of one task.
constexpr Index kReductionTask = 1 << 14;

void reduce(void* context, int task, int) {
  const Reduction& r = *(const Reduction*)context;
  const Index end = (task + 1) * kReductionTask;
  for (Index i = task * kReductionTask; i < end && i < r.size; ++i) {
    float sum = r.count > 0 ? r.slabs[i] : 0.0f;
    for (Index slab = 1; slab < r.count; ++slab) sum += r.slabs[slab * r.size + i];
    r.to[i] = sum;
  }
}
void run_reduction(const float* slabs, float* to, Index count, Index size, int threads) {
  if (!to || (count == 1 && slabs == to)) return;
  Reduction r{slabs, to, count, size};
  run_tasks((int)((size + kReductionTask - 1) / kReductionTask), threads, reduce, &r);
}

// Allocates one block for the threads' scratch, followed by the slabs that are not the results themselves,
// and sets all pointers.
bool lay_out(const Backward& scan, const TaskGrid& grid, Memory& memory, Slabs& slabs, float*& scratch,
             long scratch_floats) {
  const Common& c = scan.common;
  const long variable = grid.runs > 1 ? round_up(grid.runs * projection_floats(c)) : 0;
  const int sequences = sequences_of(c);
  const long matrix = sequences > 1 ? round_up(sequences * matrix_floats(c)) : 0;
  const long channel = sequences > 1 ? round_up((long)sequences * c.dim) : 0;
  slabs = {scan.dB, scan.dC, scan.dA, scan.dD, scan.ddelta_bias};
  const struct {
    float** slab;
    long floats;
  } each[] = {{&slabs.dB, c.constant_B.data ? matrix : variable},
              {&slabs.dC, c.constant_C.data ? matrix : variable},
              {&slabs.dA, matrix},
              {&slabs.dD, scan.dD ? channel : 0},
              {&slabs.ddelta_bias, scan.ddelta_bias ? channel : 0}};
  long floats = scratch_floats;
  for (const auto& one : each) floats += one.floats;
  if (!memory.take((size_t)floats)) return false;
  scratch = memory.data;
  float* at = memory.data + scratch_floats;
  for (const auto& one : each)
    if (one.floats) *one.slab = at, at += one.floats;
  return true;
}

// dB or dC from its slabs.
void reduce_projection(const Common& c, const Matrix& constant, const float* slabs, float* to, int runs,
                       int threads) {
  if (constant.data) return run_reduction(slabs, to, sequences_of(c), matrix_floats(c), threads);
  run_reduction(slabs, to, runs, projection_floats(c), threads);
}

}  // namespace

const char* cpu_forward(const Forward& scan) {
  const Common& c = scan.common;
  const int sequences = sequences_of(c);
  if (sequences == 0 || c.dim == 0) return nullptr;
  const KernelSet& set = kernels();
  const int tiles = divide_up(c.dim / c.groups, set.lanes), tasks = sequences * c.groups * tiles;
  const int threads = threads_for(c, tasks);
  const long floats = round_up(set.forward_floats(numbers_of(c)));
  Memory memory;
  if (!memory.take((size_t)(floats * threads))) return kNoMemory;
  ForwardJob job{scan, set, {set.lanes, tiles, 1, tiles}, memory.data, floats};
  run_tasks(
      tasks, threads,
      [](void* context, int task, int thread) {
        const ForwardJob& j = *(const ForwardJob*)context;
        j.set.forward(j.scan, j.grid, task, j.scratch + thread * j.floats);
      },
      &job);
  return nullptr;
}

namespace {

// If the caller kept no states, computes them into `memory` in x's layout. A single chunk needs none: it
// starts with the initial state.
const char* recompute_states(Backward& scan, Memory& memory) {
  const Common& c = scan.common;
  if (scan.x.data || c.length <= kStateInterval) return nullptr;
  const int numbers = numbers_of(c);
  const Index channel = numbers * (c.packed.cu_seqlens ? packed_chunks(c.length, c.packed.sequences)
                                                       : saved_chunks(c.length) + 1);
  if (!memory.take((size_t)(channel * c.dim * c.batch))) return kNoMemory;
  scan.x = {memory.data, c.dim * channel, channel, numbers};
  Forward forward = {};
  forward.common = c;
  forward.x = scan.x;
  return cpu_forward(forward);
}

const char* backward_with_states(const Backward& scan) {
  const Common& c = scan.common;
  const int sequences = sequences_of(c);
  // No tasks: the sums over nothing are zeros.
  if (sequences == 0 || c.dim == 0) {
    run_reduction(nullptr, scan.dB, 0, c.constant_B.data ? matrix_floats(c) : projection_floats(c), 1);
    run_reduction(nullptr, scan.dC, 0, c.constant_C.data ? matrix_floats(c) : projection_floats(c), 1);
    run_reduction(nullptr, scan.dA, 0, matrix_floats(c), 1);
    run_reduction(nullptr, scan.dD, 0, c.dim, 1);
    run_reduction(nullptr, scan.ddelta_bias, 0, c.dim, 1);
    return nullptr;
  }
  const KernelSet& set = kernels();
  const TaskGrid grid = backward_grid(c, set.lanes);
  const int tasks = sequences * c.groups * grid.runs, threads = threads_for(c, tasks);
  const long floats = round_up(set.backward_floats(numbers_of(c)));
  Memory memory;
  Slabs slabs;
  float* scratch;
  if (!lay_out(scan, grid, memory, slabs, scratch, floats * threads)) return kNoMemory;
  BackwardJob job{scan, set, grid, slabs, scratch, floats};
  run_tasks(
      tasks, threads,
      [](void* context, int task, int thread) {
        const BackwardJob& j = *(const BackwardJob*)context;
        j.set.backward(j.scan, j.grid, j.slabs, task, j.scratch + thread * j.floats);
      },
      &job);
  reduce_projection(c, c.constant_B, slabs.dB, scan.dB, grid.runs, threads);
  reduce_projection(c, c.constant_C, slabs.dC, scan.dC, grid.runs, threads);
  run_reduction(slabs.dA, scan.dA, sequences, matrix_floats(c), threads);
  run_reduction(slabs.dD, scan.dD, sequences, c.dim, threads);
  run_reduction(slabs.ddelta_bias, scan.ddelta_bias, sequences, c.dim, threads);
  return nullptr;
}

}  // namespace

const char* cpu_backward(const Backward& given) {
  Backward scan = given;
  Memory states;
  if (const char* failure = recompute_states(scan, states)) return failure;
  return backward_with_states(scan);
}

const char* cpu_update(const Update& step) {
  if (step.batch == 0 || step.dim == 0) return nullptr;
  const KernelSet& set = kernels();
  const int tiles = divide_up(step.dim / step.groups, set.lanes), tasks = step.batch * step.groups * tiles;
  const int threads = threads_for((double)step.batch * step.dim * step.states, tasks);
  const long floats = round_up(set.update_floats(step.states));
  Memory memory;
  if (!memory.take((size_t)(floats * threads))) return kNoMemory;
  struct {
    const Update& step;
    const KernelSet& set;
    TaskGrid grid;
    float* scratch;
    long floats;
  } job{step, set, {set.lanes, tiles, 1, tiles}, memory.data, floats};
  run_tasks(
      tasks, threads,
      [](void* context, int task, int thread) {
        const auto& j = *(const decltype(job)*)context;
        j.set.update(j.step, j.grid, task, j.scratch + thread * j.floats);
      },
      &job);
  return nullptr;
}

}  // namespace scankit::selective_scan

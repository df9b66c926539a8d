// SPDX-License-Identifier: Apache-2.0
#include "kernels/causal_conv1d/cpu/conv.h"

#include <stdlib.h>

#include "kernels/common/cpu.h"

// Divides a convolution into tasks and sums the gradients of the weights. The arithmetic is in the files
// of the instruction sets.
namespace scankit::causal_conv1d {
namespace {

const KernelSet& kernels() {
  switch (chosen_cpu_level()) {
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

int divide_up(int a, int b) { return (a + b - 1) / b; }

// Waking another thread takes about 20 us, in which a core computes 20,000 elements.
int threads_for(const Common& c) {
  return (double)c.batch * c.dim * (double)c.length < 40'000 ? 1 : thread_limit();
}

// An empty sequence has one segment, in which the initial and final states are handled.
TaskGrid task_grid(const Common& c, const KernelSet& set) {
  return {divide_up(c.dim, set.lanes), c.length > 0 ? divide_up(c.length, kSegmentSteps) : 1};
}
constexpr const char* kTooMany = "batch times dim is too large for the CPU path: split the batch";
constexpr Index kMostTasks = 0x7fffffff;

// What run_tasks() passes to a task as its context.
template <class Conv>
struct Job {
  const Conv& conv;
  const KernelSet& set;
  TaskGrid grid;
  Slabs slabs;
};

template <class Conv>
const char* run_all(const Job<Conv>& job, Task task) {
  const Common& c = job.conv.common;
  const Index count = (Index)c.batch * job.grid.tiles * job.grid.segments;
  if (count > kMostTasks) return kTooMany;
  run_tasks((int)count, threads_for(c), task, const_cast<Job<Conv>*>(&job));
  return nullptr;
}

// Sums the slabs of a tile's channels in their order, whatever the number of threads, and in double.
void reduce_tile(void* context, int tile, int) {
  const auto& job = *(const Job<Backward>*)context;
  const Backward& conv = job.conv;
  const Common& c = conv.common;
  const Index pitch = (Index)job.grid.tiles * job.set.lanes, count = (Index)c.batch * job.grid.segments;
  const int first = tile * job.set.lanes;
  for (int channel = first; channel < first + job.set.lanes && channel < c.dim; ++channel)
    for (int k = 0; k <= c.width; ++k) {
      double sum = 0;
      for (Index slab = 0; slab < count; ++slab)
        sum += (double)job.slabs.data[(slab * (c.width + 1) + k) * pitch + channel];
      float* to = k < c.width ? conv.dweight + channel * conv.dweight_dim_stride + k * conv.dweight_tap_stride
                  : conv.dbias ? conv.dbias + channel
                               : nullptr;
      if (to) *to = (conv.add ? *to : 0.0f) + (float)sum;
    }
}

}  // namespace

const char* cpu_forward(const Forward& conv) {
  const KernelSet& set = kernels();
  const Job<Forward> job{conv, set, task_grid(conv.common, set), {}};
  return run_all(job, [](void* context, int task, int) {
    const auto& j = *(const Job<Forward>*)context;
    j.set.forward(j.conv, j.grid, task);
  });
}

const char* cpu_backward(const Backward& conv) {
  const KernelSet& set = kernels();
  const Common& c = conv.common;
  Job<Backward> job{conv, set, task_grid(c, set), {}};
  const Index pitch = (Index)job.grid.tiles * set.lanes;
  const size_t floats = (size_t)((Index)c.batch * job.grid.segments * (c.width + 1) * pitch);
  job.slabs.data = (float*)malloc((floats + 1) * sizeof(float));
  if (!job.slabs.data) return "no memory for the convolution's workspace on the CPU";
  const char* failure = run_all(job, [](void* context, int task, int) {
    const auto& j = *(const Job<Backward>*)context;
    j.set.backward(j.conv, j.grid, j.slabs, task);
  });
  if (!failure) run_tasks(job.grid.tiles, threads_for(c), reduce_tile, &job);
  free(job.slabs.data);
  return failure;
}

const char* cpu_update(const Update& conv) {
  const KernelSet& set = kernels();
  const Job<Update> job{conv, set, {divide_up(conv.common.dim, set.lanes), 1}, {}};
  return run_all(job, [](void* context, int task, int) {
    const auto& j = *(const Job<Update>*)context;
    j.set.update(j.conv, j.grid, task);
  });
}

}  // namespace scankit::causal_conv1d

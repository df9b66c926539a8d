// SPDX-License-Identifier: Apache-2.0
#include "kernels/selective_scan/cuda/launch.h"

#include <stdio.h>
#include <string.h>

#include "kernels/selective_scan/cuda/arguments.h"
#include "kernels/selective_scan/cuda/choice.h"

namespace scankit::selective_scan {

// The forward's variants, then the backward's, each for every DType in its order; then the reduction.
#define FORWARD_VARIANT(name, ...)                                                      \
  {"forward_f32", "scankit_forward_" #name}, {"forward_f16", "scankit_forward_" #name}, \
      {"forward_bf16", "scankit_forward_" #name},
#define BACKWARD_VARIANT(name, ...)                                                         \
  {"backward_f32", "scankit_backward_" #name}, {"backward_f16", "scankit_backward_" #name}, \
      {"backward_bf16", "scankit_backward_" #name},
const device::KernelName kCudaKernels[] = {
#include "kernels/selective_scan/cuda/variants.def"
    {"reduce", "scankit_reduce"},
};
const int kCudaKernelCount = sizeof kCudaKernels / sizeof *kCudaKernels;

namespace {

int forward_kernel_index(int variant, DType dtype) { return variant * 3 + static_cast<int>(dtype); }
int backward_kernel_index(int variant, DType dtype) {
  return (kForwardVariantCount + variant) * 3 + static_cast<int>(dtype);
}
int reduce_kernel_index() { return kCudaKernelCount - 1; }

size_t round_up(size_t n, size_t unit) { return (n + unit - 1) / unit * unit; }

// Takes `floats` floats of the workspace, aligned for the kernels' 16-byte accesses.
Index reserve(device::Plan* plan, Index floats) {
  const size_t offset = plan->workspace_bytes;
  plan->workspace_bytes = round_up(offset + static_cast<size_t>(floats) * sizeof(float), 256);
  return static_cast<Index>(offset);
}

template <class Arguments>
void add_launch(device::Plan* plan, int kernel, Index blocks, int threads, int shared,
                const Arguments& arguments) {
  static_assert(sizeof(Arguments) <= device::kArgumentCapacity);
  device::Launch& launch = plan->launches[plan->launch_count++];
  launch.kernel = kernel;
  launch.grid_x = static_cast<unsigned>(blocks);
  launch.block_x = static_cast<unsigned>(threads);
  launch.shared_bytes = static_cast<unsigned>(shared);
  launch.argument_bytes = sizeof arguments;
  memcpy(launch.argument, &arguments, sizeof arguments);
}

Tiling make_tiling(const Variant& variant, int warps, const Common& common) {
  const int channels = common.dim / common.groups, of_block = warps * variant.warp_channels;
  return {channels, (channels + of_block - 1) / of_block};
}

bool is_known(const Common& common, device::Message* message) {
  if (common.states < 1 || common.states > kMaxStates) {
    snprintf(message->text, sizeof message->text,
             "selective_scan: %d states; the CUDA kernels take 1 to %d: split the state dimension",
             common.states, kMaxStates);
    return false;
  }
  if (is_general(common)) {
    snprintf(message->text, sizeof message->text,
             "selective_scan: the CUDA kernels take a real A and variable B and C alone: use CPU tensors");
    return false;
  }
  if (common.groups < 1 || common.dim % common.groups != 0) {
    snprintf(message->text, sizeof message->text,
             "selective_scan: %d channels do not divide into %d groups: B and C need a group count that does",
             common.dim, common.groups);
    return false;
  }
  return true;
}

bool refuse(device::Message* message, const char* what, const char* next) {
  snprintf(message->text, sizeof message->text, "selective_scan: %s: %s", what, next);
  return false;
}

bool add_forward(const Forward& forward, bool x_in_workspace, const Choice& choice, device::Plan* plan,
                 device::Message* message) {
  const Common& common = forward.common;
  const Variant& variant = kForwardVariants[choice.variant];
  const Index blocks = block_count(variant, choice.warps, common);
  if (blocks < 0)
    return refuse(message, "batch times channels is too large for one launch", "split the batch");
  if (blocks == 0) return true;
  ForwardArguments arguments = {};
  arguments.forward = forward;
  arguments.tiling = make_tiling(variant, choice.warps, common);
  arguments.x_in_workspace = x_in_workspace;
  add_launch(plan, forward_kernel_index(choice.variant, common.dtype), blocks, choice.warps * 32,
             shared_bytes(variant, choice.warps, common.states), arguments);
  return true;
}

void add_job(ReduceArguments* arguments, int* count, Index source, Index slabs, Index stride, Index rows,
             Index length, Index pitch, float* out) {
  const Index blocks = out == nullptr ? 0 : (rows * (pitch / 4) + kReduceThreads - 1) / kReduceThreads;
  arguments->jobs[*count] = {source, slabs, stride, rows, length, pitch, out};
  arguments->first_block[*count + 1] = arguments->first_block[*count] + blocks;
  ++*count;
}

bool add_reduce(const BackwardArguments& backward, device::Plan* plan, device::Message* message) {
  const Backward& b = backward.backward;
  const Common& c = b.common;
  const bool empty = c.batch == 0 || c.length == 0 || c.dim == 0;
  const Index rows = Index{c.batch} * c.groups * c.states, batches = empty ? 0 : c.batch;
  const Index half = rows * backward.pitch, tiles = empty ? 0 : backward.tiling.tiles_per_group;
  ReduceArguments arguments = {};
  int count = 0;
  add_job(&arguments, &count, backward.projections, tiles, 2 * half, rows, c.length, backward.pitch, b.dB);
  add_job(&arguments, &count, backward.projections + half * Index{sizeof(float)}, tiles, 2 * half, rows,
          c.length, backward.pitch, b.dC);
  add_job(&arguments, &count, backward.dA, batches, backward.dA_pitch, 1, Index{c.dim} * c.states,
          backward.dA_pitch, b.dA);
  add_job(&arguments, &count, backward.dD, batches, backward.dim_pitch, 1, c.dim, backward.dim_pitch, b.dD);
  add_job(&arguments, &count, backward.dbias, batches, backward.dim_pitch, 1, c.dim, backward.dim_pitch,
          b.ddelta_bias);
  const Index blocks = arguments.first_block[kMaxReduceJobs];
  if (blocks > 0x7fffffff)
    return refuse(message, "dB and dC are too large for one launch", "split the batch");
  if (blocks > 0) add_launch(plan, reduce_kernel_index(), blocks, kReduceThreads, 0, arguments);
  return true;
}

// Rows of the slabs; the reduction needs them also where nothing was scanned.
void set_pitches(BackwardArguments* arguments) {
  const Common& c = arguments->backward.common;
  arguments->pitch = chunk_count(c.length) * kStateInterval;
  arguments->dim_pitch = static_cast<Index>(round_up(static_cast<size_t>(c.dim), 4));
  arguments->dA_pitch =
      static_cast<Index>(round_up(static_cast<size_t>(c.dim) * static_cast<size_t>(c.states), 4));
}

void reserve_slabs(BackwardArguments* arguments, bool sliced, device::Plan* plan) {
  const Common& c = arguments->backward.common;
  const Index rows = Index{c.batch} * c.groups * c.states;
  arguments->projections = reserve(plan, arguments->tiling.tiles_per_group * 2 * rows * arguments->pitch);
  arguments->dA = reserve(plan, c.batch * arguments->dA_pitch);
  arguments->dD = reserve(plan, c.batch * arguments->dim_pitch);
  arguments->dbias = reserve(plan, c.batch * arguments->dim_pitch);
  if (sliced) arguments->carry = reserve(plan, Index{c.batch} * c.dim * c.states);
}

}  // namespace

bool plan_forward_as(const Forward& forward, const Choice& choice, device::Plan* plan,
                     device::Message* message) {
  plan->launch_count = 0;
  plan->workspace_bytes = 0;
  if (!is_known(forward.common, message)) return false;
  return add_forward(forward, false, choice, plan, message);
}

bool plan_backward_as(const Backward& backward, const Choice& choice, const Choice& states_choice,
                      device::Plan* plan, device::Message* message) {
  plan->launch_count = 0;
  plan->workspace_bytes = 0;
  const Common& c = backward.common;
  if (!is_known(c, message)) return false;
  BackwardArguments arguments = {};
  arguments.backward = backward;
  const Variant& variant = kBackwardVariants[choice.variant];
  const Index blocks = block_count(variant, choice.warps, c);
  if (blocks < 0)
    return refuse(message, "batch times channels is too large for one launch", "split the batch");
  arguments.tiling = make_tiling(variant, choice.warps, c);
  set_pitches(&arguments);
  if (blocks > 0 && c.length > 0) {
    // One tile starts from zero: no saved states are read.
    if (backward.x.data == nullptr && c.length > kStateInterval) {
      arguments.x_in_workspace = true;
      reserve(plan, Index{c.batch} * c.dim * (chunk_count(c.length) + 1) * c.states);
      Forward states = {};
      states.common = c;
      states.common.z = {};
      if (!add_forward(states, true, states_choice, plan, message)) return false;
    }
    reserve_slabs(&arguments, variant.sliced, plan);
    add_launch(plan, backward_kernel_index(choice.variant, c.dtype), blocks, choice.warps * 32,
               shared_bytes(variant, choice.warps, c.states), arguments);
  }
  return add_reduce(arguments, plan, message);
}

bool plan_forward(const Forward& forward, const device::DeviceFacts& facts, device::Plan* plan,
                  device::Message* message) {
  if (!is_known(forward.common, message)) return false;
  Choice choice;
  if (!choose_forward(forward.common, facts, &choice))
    return refuse(message, "no CUDA variant fits this GPU's shared memory", "use fewer states");
  return plan_forward_as(forward, choice, plan, message);
}

bool plan_backward(const Backward& backward, const device::DeviceFacts& facts, device::Plan* plan,
                   device::Message* message) {
  if (!is_known(backward.common, message)) return false;
  Choice choice, states;
  if (!choose_backward(backward.common, facts, &choice) || !choose_forward(backward.common, facts, &states))
    return refuse(message, "no CUDA variant fits this GPU's shared memory", "use fewer states");
  return plan_backward_as(backward, choice, states, plan, message);
}

}  // namespace scankit::selective_scan

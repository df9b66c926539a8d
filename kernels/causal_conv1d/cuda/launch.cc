// SPDX-License-Identifier: Apache-2.0
#include "kernels/causal_conv1d/cuda/launch.h"

#include <stdio.h>
#include <string.h>

#include "kernels/causal_conv1d/cuda/arguments.h"

namespace scankit::causal_conv1d {

// Each kernel for every DType in its order; then the reduction.
#define CONV_KERNEL(name, ...)                                              \
  {"conv_f32", "scankit_conv_" #name}, {"conv_f16", "scankit_conv_" #name}, \
      {"conv_bf16", "scankit_conv_" #name},
const device::KernelName kCudaKernels[] = {
#include "kernels/causal_conv1d/cuda/kernels.def"
    {"conv_reduce", "scankit_conv_reduce"},
};
const int kCudaKernelCount = sizeof kCudaKernels / sizeof *kCudaKernels;

namespace {

#define CONV_KERNEL(name, function, ...) k_##name,
enum Kernel {
#include "kernels/causal_conv1d/cuda/kernels.def"
};

constexpr Index kMostBlocks = 0x7fffffff;

Index divide_up(Index a, Index b) { return (a + b - 1) / b; }

template <class Arguments>
bool add_launch(device::Plan* plan, int kernel, Index blocks, int threads, const Arguments& arguments,
                device::Message* message) {
  static_assert(sizeof(Arguments) <= device::kArgumentCapacity);
  if (blocks > kMostBlocks) {
    snprintf(message->text, sizeof message->text,
             "causal_conv1d: batch times channels is too large for one launch: split the batch");
    return false;
  }
  if (blocks == 0) return true;
  device::Launch& launch = plan->launches[plan->launch_count++];
  launch.kernel = kernel;
  launch.grid_x = static_cast<unsigned>(blocks);
  launch.block_x = static_cast<unsigned>(threads);
  launch.shared_bytes = 0;
  launch.argument_bytes = sizeof arguments;
  memcpy(launch.argument, &arguments, sizeof arguments);
  return true;
}

int kernel_index(Kernel kernel, DType dtype) { return kernel * 3 + static_cast<int>(dtype); }

// Neighbouring lanes on neighbouring elements, whatever the layout.
bool lanes_over_channels(const Common& c) { return c.x.dim_stride == 1 || c.length == 1; }

struct Cut {
  bool by_channel;
  Index segments, blocks;
};
Cut cut_of(const Common& c) {
  const bool by_channel = lanes_over_channels(c);
  const Index steps = by_channel ? kChannelSegment : kStepSegment;
  const Index segments = c.length > 0 ? divide_up(c.length, steps) : 1;
  const Index rows = by_channel ? divide_up(c.dim, kThreads) : c.dim;
  // Not multiplied out where that could overflow: add_launch refuses what is too large.
  if (rows > 0 && segments > kMostBlocks * kWarps / rows) return {by_channel, segments, kMostBlocks + 1};
  const Index of_batch = rows * segments;
  if (c.batch > 0 && of_batch > kMostBlocks * kWarps / c.batch)
    return {by_channel, segments, kMostBlocks + 1};
  const Index all = of_batch * c.batch;
  return {by_channel, segments, by_channel ? all : divide_up(all, kWarps)};
}

void reset(device::Plan* plan) {
  plan->launch_count = 0;
  plan->workspace_bytes = 0;
}

}  // namespace

bool plan_forward(const Forward& conv, device::Plan* plan, device::Message* message) {
  reset(plan);
  const Cut cut = cut_of(conv.common);
  const ForwardArguments arguments = {nullptr, conv, cut.segments};
  const Kernel kernel = cut.by_channel ? k_forward_by_channel : k_forward_by_step;
  return add_launch(plan, kernel_index(kernel, conv.common.dtype), cut.blocks, kThreads, arguments, message);
}

bool plan_backward(const Backward& conv, device::Plan* plan, device::Message* message) {
  reset(plan);
  const Common& c = conv.common;
  const Cut cut = cut_of(c);
  const BackwardArguments arguments = {nullptr, conv, cut.segments};
  const Kernel kernel = cut.by_channel ? k_backward_by_channel : k_backward_by_step;
  if (!add_launch(plan, kernel_index(kernel, c.dtype), cut.blocks, kThreads, arguments, message))
    return false;
  const size_t slabs = static_cast<size_t>(c.batch) * static_cast<size_t>(cut.segments);
  plan->workspace_bytes =
      slabs * static_cast<size_t>(c.width + 1) * static_cast<size_t>(c.dim) * sizeof(float);
  const Index tiles = divide_up(c.dim, kReduceChannels);
  return add_launch(plan, kCudaKernelCount - 1, tiles * (c.width + 1), kReduceChannels * kReduceParts,
                    arguments, message);
}

bool plan_update(const Update& conv, device::Plan* plan, device::Message* message) {
  reset(plan);
  const Common& c = conv.common;
  const UpdateArguments arguments = {nullptr, conv};
  const Index tiles = divide_up(c.dim, kThreads);
  return add_launch(plan, kernel_index(k_update, c.dtype), tiles * c.batch, kThreads, arguments, message);
}

}  // namespace scankit::causal_conv1d

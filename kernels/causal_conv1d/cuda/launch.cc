// SPDX-License-Identifier: Apache-2.0
#include "kernels/causal_conv1d/cuda/launch.h"

#include <stdio.h>
#include <string.h>

// Which kernels run a call: those of vector.cuh if they take it, else those of pairs.cuh, else those
// of forward.cuh, which take anything. The choice, and with it the order of the sums, depends on shape,
// strides, alignment and options, never on the GPU. A backward is one launch, and a reduction where its sums
// are in slabs.
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

// Appends a launch; none for no blocks, an empty problem. Refuses more blocks than grid.x has.
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
  launch.grid_y = 1;
  launch.block_x = static_cast<unsigned>(threads);
  launch.shared_bytes = 0;
  launch.follows = false;
  launch.argument_bytes = sizeof arguments;
  memcpy(launch.argument, &arguments, sizeof arguments);
  return true;
}

int kernel_index(Kernel kernel, DType dtype) { return kernel * 3 + static_cast<int>(dtype); }

// Which puts neighbouring lanes on neighbouring elements: lanes over channels, or over steps.
bool lanes_over_channels(const Common& c) { return c.x.dim_stride == 1 || c.length == 1; }

// How the *_by_channel and *_by_step kernels share a call out.
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

// add_launch with `parts` blocks in grid.y, at most kMostParts.
template <class Arguments>
bool add_parts(device::Plan* plan, int kernel, Index blocks, Index parts, unsigned threads,
               const Arguments& arguments, device::Message* message) {
  if (!add_launch(plan, kernel, blocks, static_cast<int>(threads), arguments, message)) return false;
  plan->launches[plan->launch_count - 1].grid_y = static_cast<unsigned>(parts);
  return true;
}

// Takes the workspace for `slabs` slabs, [width + 1][dim] each, and appends their sum.
bool add_reduction(device::Plan* plan, const Backward& conv, Index segments, Index slabs,
                   device::Message* message) {
  const Common& c = conv.common;
  const BackwardArguments arguments = {nullptr, conv, segments, slabs};
  plan->workspace_bytes = static_cast<size_t>(slabs) * static_cast<size_t>(c.width + 1) *
                          static_cast<size_t>(c.dim) * sizeof(float);
  if (!add_launch(plan, kCudaKernelCount - 1, divide_up(c.dim, kReduceChannels) * (c.width + 1),
                  kReduceChannels * kReduceParts, arguments, message))
    return false;
  if (plan->launch_count == 2) plan->launches[1].follows = true;
  return true;
}

// By the kernels of vector.cuh: one launch, dim blocks by parts.
bool plan_forward_vector(const Forward& conv, Rows rows, device::Plan* plan, device::Message* message) {
  const Common& c = conv.common;
  VectorCut cut = cut_forward(conv, rows);
  // kMostParts blocks of warps of two tiles are not enough for so long a channel: by a kernel that
  // walks on.
  if (rows == Rows::kWhole && cut.tiles.warp > kWholeTiles) {
    rows = Rows::kSingle;
    cut = cut_forward(conv, rows);
  }
  const ForwardVectorArguments arguments = {nullptr, conv, cut.tiles, jump_of(c.x, c, cut.tiles),
                                            jump_of(conv.out, c, cut.tiles)};
  const bool usual = takes_usual(c, cut.tiles.states);
  const Kernel kernel = rows != Rows::kWhole ? k_forward_single : usual ? k_forward_usual : k_forward_whole;
  return add_parts(plan, kernel_index(kernel, c.dtype), c.dim, cut.tiles.parts, cut.threads, arguments,
                   message);
}

// The same; more than one part leaves slabs, which a second launch adds up.
bool plan_backward_vector(const Backward& conv, Rows rows, device::Plan* plan, device::Message* message) {
  const Common& c = conv.common;
  const VectorCut cut = cut_backward(conv, rows);
  const BackwardVectorArguments arguments = {nullptr,
                                             conv,
                                             cut.tiles,
                                             jump_of(c.x, c, cut.tiles),
                                             jump_of(conv.dout, c, cut.tiles),
                                             jump_of(conv.dx, c, cut.tiles)};
  const bool usual = takes_usual(c, cut.tiles.states);
  const Kernel kernel = rows != Rows::kWhole ? k_backward_single
                        : usual              ? k_backward_usual
                                             : k_backward_whole;
  if (!add_parts(plan, kernel_index(kernel, c.dtype), c.dim, cut.tiles.parts, cut.threads, arguments,
                 message))
    return false;
  // For Copied; kernels for GPUs before sm_80 leave it unused.
  if (rows == Rows::kWhole)
    plan->launches[plan->launch_count - 1].shared_bytes = cut.threads / 32 * kStagesOfWarp * kStageBytes;
  return cut.tiles.parts == 1 || add_reduction(plan, conv, 0, cut.tiles.parts, message);
}

bool plan_forward_pairs(const Forward& conv, device::Plan* plan, device::Message* message) {
  const Common& c = conv.common;
  const ForwardPairsArguments arguments = {nullptr, conv, cut_to_segments(c, has_states(conv))};
  return add_parts(plan, kernel_index(k_forward_pairs, c.dtype), divide_up(c.dim, kPairChannels),
                   parts_of(c, arguments.segments), kThreads, arguments, message);
}

bool plan_backward_pairs(const Backward& conv, device::Plan* plan, device::Message* message) {
  const Common& c = conv.common;
  const BackwardPairsArguments arguments = {nullptr, conv, cut_to_segments(c, has_states(conv))};
  const Index parts = parts_of(c, arguments.segments);
  return add_parts(plan, kernel_index(k_backward_pairs, c.dtype), divide_up(c.dim, kPairChannels), parts,
                   kThreads, arguments, message) &&
         add_reduction(plan, conv, 0, parts, message);
}

}  // namespace

bool plan_forward(const Forward& conv, device::Plan* plan, device::Message* message) {
  clear(plan);
  const Rows rows = rows_of(conv.common, conv.common.x, conv.out);
  if (rows != Rows::kOther) return plan_forward_vector(conv, rows, plan, message);
  if (pairs_go(conv.common, conv.common.x, conv.out)) return plan_forward_pairs(conv, plan, message);
  const Cut cut = cut_of(conv.common);
  const ForwardArguments arguments = {nullptr, conv, cut.segments};
  const Kernel kernel = cut.by_channel ? k_forward_by_channel : k_forward_by_step;
  return add_launch(plan, kernel_index(kernel, conv.common.dtype), cut.blocks, kThreads, arguments, message);
}

bool plan_backward(const Backward& conv, device::Plan* plan, device::Message* message) {
  clear(plan);
  const Common& c = conv.common;
  const Rows rows = rows_of(c, c.x, conv.dout, conv.dx);
  if (rows != Rows::kOther) return plan_backward_vector(conv, rows, plan, message);
  if (pairs_go(c, c.x, conv.dout, conv.dx)) return plan_backward_pairs(conv, plan, message);
  const Cut cut = cut_of(c);
  const Index slabs = c.batch * cut.segments;
  const BackwardArguments arguments = {nullptr, conv, cut.segments, slabs};
  const Kernel kernel = cut.by_channel ? k_backward_by_channel : k_backward_by_step;
  return add_launch(plan, kernel_index(kernel, c.dtype), cut.blocks, kThreads, arguments, message) &&
         add_reduction(plan, conv, cut.segments, slabs, message);
}

bool plan_update(const Update& conv, device::Plan* plan, device::Message* message) {
  clear(plan);
  const Common& c = conv.common;
  const UpdateArguments arguments = {nullptr, conv};
  const Index tiles = divide_up(c.dim, kThreads);
  return add_launch(plan, kernel_index(k_update, c.dtype), tiles * c.batch, kThreads, arguments, message);
}

}  // namespace scankit::causal_conv1d

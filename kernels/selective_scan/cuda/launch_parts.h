// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "kernels/selective_scan/cuda/arguments.h"
#include "kernels/selective_scan/cuda/choice.h"
#include "kernels/selective_scan/cuda/launch.h"

// What the files launch*.cc make plans of.
namespace scankit::selective_scan {

// Where each kernel stands in kCudaKernels (kernel_table.cc).
int forward_kernel_index(int variant, DType dtype);
int backward_kernel_index(int variant, DType dtype);
int general_kernel_index(bool backward, const Common& c);
// For a constant B or C. Its ends kernel is the forward's where B, the backward's where C is constant.
int packed_kernel_index(bool backward, DType dtype);
int constant_kernel_index(bool backward, bool ends, DType dtype);
int ends_kernel_index(bool backward, DType dtype);
int update_kernel_index(DType dtype);
int reduce_kernel_index();

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
// `rows`. shared: bytes of dynamic shared memory. follows: its kernel waits itself for the launch before it.
template <class Arguments>
void add_launch(device::Plan* plan, int kernel, Index blocks, int threads, int shared,
                const Arguments& arguments, Index rows = 1, bool follows = false) {
  static_assert(sizeof(Arguments) <= device::kArgumentCapacity);
  device::Launch& launch = plan->launches[plan->launch_count++];
  launch.kernel = kernel;
  launch.grid_x = static_cast<unsigned>(blocks);
  launch.grid_y = static_cast<unsigned>(rows);
  launch.block_x = static_cast<unsigned>(threads);
  launch.shared_bytes = static_cast<unsigned>(shared);
  launch.follows = follows;
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

// A block's channels are its warps' channels; the group's last block may have some to spare.
inline Tiling make_tiling(const Variant& variant, int warps, const Common& common) {
  const int channels = common.dim / common.groups, of_block = warps * variant.warp_channels;
  return {channels, (channels + of_block - 1) / of_block};
}

// The slabs of the plain backward (launch_slabs.cc).
void set_pitches(BackwardArguments* arguments);
void reserve_slabs(BackwardArguments* arguments, bool sliced, device::Plan* plan);
bool add_reduce(const BackwardArguments& backward, Index out_pitch, bool add, device::Plan* plan,
                device::Message* message);

// By the kernels for packed sequences, into an empty plan. False in `*taken`: not theirs, the general ones' then.
bool plan_packed_forward(const Forward& forward, const device::DeviceFacts& facts, bool* taken,
                         device::Plan* plan, device::Message* message);
bool plan_packed_backward(const Backward& backward, const device::DeviceFacts& facts, bool* taken,
                          device::Plan* plan, device::Message* message);

// By the general kernels, into an empty plan.
bool add_general_forward(const Forward& forward, bool x_in_workspace, device::Plan* plan,
                         device::Message* message);
bool plan_general_backward(const Backward& backward, const device::DeviceFacts& facts, device::Plan* plan,
                           device::Message* message);

// Whether the kernels may take eight elements of any row at once (`aligned` of their arguments, 16 bytes), or
// four (`halves`, 8 bytes; of fp32 16, which are four). The host looks once, instead of every thread at every load. What is
// not there is aligned.

// Whether data and two strides, in elements, are multiples of `bytes`.
inline bool at_places(Index bytes, const void* data, Index stride, Index other, DType dtype) {
  const Index size = dtype == DType::F32 ? 4 : 2;
  if (size == 4) bytes = 16;
  return reinterpret_cast<Index>(data) % bytes == 0 && stride * size % bytes == 0 &&
         other * size % bytes == 0;
}
inline bool is_aligned(const Sequence& s, const Common& c, Index bytes = 16) {
  return !s.data || at_places(bytes, s.data, s.batch_stride, s.dim_stride, c.dtype);
}
inline bool is_aligned(const SequenceOut& s, const Common& c, Index bytes = 16) {
  return !s.data || at_places(bytes, s.data, s.batch_stride, s.dim_stride, c.dtype);
}
inline bool is_aligned(const Projection& p, const Common& c, Index bytes = 16) {
  return !p.data || (at_places(bytes, p.data, p.batch_stride, p.group_stride, c.dtype) &&
                     at_places(bytes, p.data, p.state_stride, 0, c.dtype));
}

// The length counts too, in pieces of eight steps (four for 8 bytes): the kernels then take a piece as
// there or not.
inline bool is_aligned(const Common& c, Index bytes = 16) {
  return c.length % (bytes / 2) == 0 && is_aligned(c.u, c, bytes) && is_aligned(c.delta, c, bytes) &&
         is_aligned(c.z, c, bytes) && is_aligned(c.B, c, bytes) && is_aligned(c.C, c, bytes);
}
inline bool is_aligned(const Forward& f, Index bytes = 16) {
  return is_aligned(f.common, bytes) && is_aligned(f.out, f.common, bytes) &&
         is_aligned(f.out_z, f.common, bytes);
}
inline bool is_aligned(const Backward& b, Index bytes = 16) {
  const Common& c = b.common;
  return is_aligned(c, bytes) && is_aligned(b.dout, c, bytes) && is_aligned(b.out, c, bytes) &&
         is_aligned(b.du, c, bytes) && is_aligned(b.ddelta, c, bytes) && is_aligned(b.dz, c, bytes) &&
         is_aligned(b.out_z, c, bytes);
}

}  // namespace scankit::selective_scan

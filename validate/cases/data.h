// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "validate/cases/cases.h"
#include "validate/run/run.h"

namespace scankit::validate {

// The tensor's elements in logical (row-major) order, rounded to its dtype; real and imaginary part in turn.
// Empty for FillKind::None.
std::vector<double> make_data(const TensorSpec& spec);

// Where a tensor is in its storage. All of these occur in real callers: mamba_inner_fn passes
// channel-major tensors and halves of them, and others pass slices of longer tensors and storages
// that begin anywhere.
enum class Layout {
  Plain,         // contiguous
  AtStart,       // contiguous, no guard in front: storage offset 0
  Misaligned,    // contiguous, an odd number of elements into the storage
  ChannelMajor,  // (batch, dim, length) with strides (length, batch * length, 1)
  HalfOfWider,   // ChannelMajor, the second half of a tensor with twice the channels
  LongerRows     // each row is followed by three elements that are not the tensor's
};
enum class MatrixLayout { Plain, Transposed };

inline constexpr std::int64_t kGuard = 64;  // elements: keeps 64-byte alignment for every dtype

// Sets strides, offset and storage of `spec` from its shape.
void lay_out(TensorSpec& spec, Layout layout);
void lay_out_matrix(TensorSpec& spec, MatrixLayout layout);

// `device` may have its way attached ("cuda:0+graph").
inline bool on_cpu(const std::string& device) { return device.starts_with("cpu"); }
// "" without one. What says more of the module than of a GPU (streams, graphs, red zones, time) is done on the
// first one only; the others run every case as it is, while the first one is the current device.
std::string first_gpu(const std::vector<std::string>& devices);

// What the children of a run have to do. The tasks point into `request`, which must outlive them. All
// devices and ways of one case are adjacent, because the harness computes the exact result once for
// all of them.
std::vector<Task> tasks_of(const ValidateRequest& request);
// The cases that run on each GPU with bands around every tensor. torch cannot switch from a pluggable
// allocator back to its own, which graphs and timing need, so that these tasks get children of their own.
std::vector<Task> banded_tasks_of(const ValidateRequest& request);

}  // namespace scankit::validate

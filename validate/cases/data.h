// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "validate/cases/cases.h"
#include "validate/run/protocol.h"
#include "validate/run/run.h"

namespace scankit::validate {

// The tensor's elements in logical (row-major) order, rounded to its dtype; real and imaginary part in turn.
// Empty for FillKind::None.
std::vector<double> make_data(const TensorSpec& spec);

// How a tensor lies in its storage. All are what callers of the module really pass (mamba_inner_fn hands over
// channel-major tensors and halves of them; tensors cut out of longer ones; storages that begin anywhere).
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

// Of a device with or without its way ("cuda:0+graph").
inline bool on_cpu(const std::string& device) { return device.starts_with("cpu"); }

// What the children of a run do. The tasks point into `request`, which must outlive them.
// One case after the other on all devices and in all ways: the harness computes the exact result once for
// them all.
std::vector<Task> tasks_of(const ValidateRequest& request);
// On each GPU, the cases with bands around what lies on it. Torch cannot go back from another allocator to
// its own, and graphs and timing need that one: children of their own.
std::vector<Task> banded_tasks_of(const ValidateRequest& request);

}  // namespace scankit::validate

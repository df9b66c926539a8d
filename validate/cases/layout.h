// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <vector>

#include "validate/cases/cases.h"

namespace scankit::validate {

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

}  // namespace scankit::validate

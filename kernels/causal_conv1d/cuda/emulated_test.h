// SPDX-License-Identifier: Apache-2.0
#pragma once
// For tests of the convolution's device code on the CPU: the kernels of a plan, all types, and tensors of any
// strides that end or begin at an unreadable page. Included before anything else of the kernels.
#define SCANKIT_EMULATED
// Each needs what comes before it.
// clang-format off
#include "kernels/selective_scan/cuda/emulator.h"
#undef __shared__
#define __shared__ static  // of all threads of a block; NOLINT(bugprone-reserved-identifier)
#include "kernels/causal_conv1d/cuda/backward_vector.cuh"
#include "kernels/causal_conv1d/cuda/pairs.cuh"
#include "kernels/causal_conv1d/cuda/vector.cuh"
#include "kernels/causal_conv1d/cuda/forward.cuh"
#include "kernels/selective_scan/cuda/emulated_test.h"
// clang-format on
#include <string>

#include "kernels/causal_conv1d/cuda/launch.h"
#include "kernels/selective_scan/check_number.h"
#include "validate/cases/random.h"

namespace scankit::causal_conv1d {

using Doubles = std::vector<double>;

inline selective_scan::DType same(DType dtype) { return static_cast<selective_scan::DType>(dtype); }
inline float widen_half(unsigned short bits) {
  return static_cast<float>(selective_scan::decode(bits, selective_scan::DType::F16));
}
inline unsigned short narrow_half(float x) {
  return static_cast<unsigned short>(selective_scan::encode(x, selective_scan::DType::F16));
}

// Where the elements of a (batch, dim, steps) tensor lie: `skip` before the first, `pad` behind each row.
struct Layout {
  int skip = 0, pad = 0, step = 1;
  bool channel_last = false;
};

class Array {
 public:
  Array(DType dtype, int batch, int dim, int steps, const Layout& layout, bool at_end)
      : dtype_(dtype), size_(selective_scan::size_of(same(dtype))), shape_{batch, dim, steps} {
    const Index row = layout.channel_last ? dim + layout.pad : Index{steps} * layout.step + layout.pad;
    step_ = layout.channel_last ? row : layout.step;
    dim_ = layout.channel_last ? 1 : row;
    batch_ = row * (layout.channel_last ? steps : dim);
    skip_ = layout.skip;
    for (Index b = 0; b < batch; ++b)
      for (Index d = 0; d < dim; ++d)
        for (Index t = 0; t < steps; ++t)
          places_.push_back(std::size_t(skip_ + b * batch_ + d * dim_ + t * step_));
    const std::size_t last = places_.empty() ? 0 : std::ranges::max(places_) + 1;
    // Ends at the page, up to what 16 bytes need.
    memory_.emplace_back(new selective_scan::Guarded((last * size_ + 15) / 16 * 16, at_end));
    bytes_ = (last * size_ + 15) / 16 * 16;
  }

  Doubles fill(std::uint64_t seed) {
    Doubles values;
    for (std::size_t i = 0; i < places_.size(); ++i) values.push_back(2 * validate::unit(seed, i) - 1);
    set(values);
    return get();
  }
  void set(const Doubles& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint32_t bits = selective_scan::encode(values[i], same(dtype_));
      std::memcpy(data() + places_[i] * size_, &bits, size_);
    }
  }
  void clear() { std::memset(data(), 0xff, bytes_); }
  Doubles get() const {
    Doubles values;
    for (const std::size_t place : places_) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, data() + place * size_, size_);
      values.push_back(selective_scan::decode(bits, same(dtype_)));
    }
    return values;
  }
  bool outside_is_untouched() const {
    std::vector<bool> ours(bytes_ / size_);
    for (const std::size_t place : places_) ours[place] = true;
    for (std::size_t i = 0; i < bytes_; ++i)
      if (!ours[i / size_] && data()[i] != '\xff') return false;
    return true;
  }
  Signal in() const { return {data() + skip_ * Index(size_), batch_, dim_, step_}; }
  SignalOut out() const { return {data() + skip_ * Index(size_), batch_, dim_, step_}; }
  DType dtype() const { return dtype_; }

 private:
  char* data() const { return memory_[0]->data(); }
  DType dtype_;
  std::size_t size_, bytes_ = 0;
  int shape_[3];
  Index skip_, batch_, dim_, step_;
  std::vector<std::size_t> places_;
  std::vector<std::unique_ptr<selective_scan::Guarded>> memory_;
};

template <class Arguments>
std::function<void()> body_of(void (*kernel)(const Arguments&), const device::Launch& launch) {
  return selective_scan::body_of(kernel, launch);
}

// The kernel of a launch.
template <class T>
std::function<void()> body_for(const std::string& name, const device::Launch& launch) {
#define CONV_KERNEL(symbol, function, Arguments, ...) \
  if (name == "scankit_conv_" #symbol) return body_of<Arguments>(&function<T>, launch);
#include "kernels/causal_conv1d/cuda/kernels.def"
  return {};
}

inline void emulate(const device::Launch& launch) {
  const std::string unit = kCudaKernels[launch.kernel].unit, name = kCudaKernels[launch.kernel].symbol;
  std::function<void()> body;
  if (unit == "conv_f32") body = body_for<Float>(name, launch);
  if (unit == "conv_f16") body = body_for<Half>(name, launch);
  if (unit == "conv_bf16") body = body_for<BFloat>(name, launch);
  if (unit == "conv_reduce") body = body_of<BackwardArguments>(&reduce_slabs, launch);
  ASSERT_TRUE(body) << name;
  for (unsigned block = 0; block < launch.grid_x * launch.grid_y; ++block) {
    blockIdx.x = block % launch.grid_x, blockIdx.y = block / launch.grid_x;
    blockDim.x = launch.block_x;
    emulator::Block(launch.block_x, body, emulator::Block::next_order()).run();
  }
}

}  // namespace scankit::causal_conv1d

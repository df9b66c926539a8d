// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <random>

#include "kernels/selective_scan/check_number.h"
#include "kernels/selective_scan/cuda/check.h"

namespace scankit::selective_scan {

Tensor::Tensor(Gpu& gpu, DType dtype, std::array<Index, 4> sizes, std::array<Index, 4> strides, Index shift)
    : gpu_(gpu), dtype_(dtype), size_(size_of(dtype)), strides_(strides), shift_(shift) {
  Index last = shift;
  for (Index i = 0; i < sizes[0]; ++i)
    for (Index j = 0; j < sizes[1]; ++j)
      for (Index k = 0; k < sizes[2]; ++k)
        for (Index l = 0; l < sizes[3]; ++l) {
          const Index at = shift + i * strides[0] + j * strides[1] + k * strides[2] + l * strides[3];
          places_.push_back(static_cast<std::size_t>(at) * size_);
          if (at >= last) last = at + 1;
        }
  // A whole number of words, as every allocator gives: the kernels load 16-bit rows by words.
  bytes_ = (static_cast<std::size_t>(last) * size_ + 3) / 4 * 4;
  memory_ = gpu.allocate(bytes_);
  poison();
}
Tensor::~Tensor() { gpu_.release(memory_); }

void Tensor::poison() { gpu_.fill(memory_, 0xff, bytes_); }

std::vector<double> Tensor::set(const std::vector<double>& values) {
  std::vector<unsigned char> host(bytes_, 0xff);
  std::vector<double> result(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint32_t bits = encode(values[i], dtype_);
    std::memcpy(host.data() + places_[i], &bits, size_);
    result[i] = decode(bits, dtype_);
  }
  gpu_.to_device(memory_, host.data(), bytes_);
  return result;
}

std::vector<unsigned char> Tensor::raw() const {
  std::vector<unsigned char> host(bytes_);
  gpu_.to_host(host.data(), memory_, bytes_);
  return host;
}

std::vector<double> Tensor::get(bool* untouched) const {
  std::vector<unsigned char> host = raw();
  std::vector<double> result(places_.size());
  for (std::size_t i = 0; i < places_.size(); ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, host.data() + places_[i], size_);
    result[i] = decode(bits, dtype_);
    std::memset(host.data() + places_[i], 0xff, size_);
  }
  for (const unsigned char byte : host)
    if (byte != 0xff) *untouched = false;
  return result;
}

Arrays::Arrays(Gpu& gpu, const Extent& extent) : gpu_(gpu) {
  describe(extent);
  poison_forward();
  poison_gradients();
}
Arrays::~Arrays() {
  for (const auto* blocks : {&inputs_, &results_, &gradients_})
    for (const Block& block : *blocks) gpu_.release(block.memory);
}

void* Arrays::make(Index count, DType dtype, double mean, double scale) {
  const std::size_t bytes = static_cast<std::size_t>(count) * size_of(dtype), block = std::size_t{1} << 20;
  auto* memory = static_cast<unsigned char*>(gpu_.allocate(bytes));
  inputs_.push_back({memory, bytes});
  std::mt19937 random(static_cast<unsigned>(inputs_.size()));
  std::normal_distribution<double> d(mean, scale);
  std::vector<unsigned char> host(std::min(block, bytes));
  for (std::size_t at = 0; at < host.size(); at += size_of(dtype)) {
    const std::uint32_t bits = encode(d(random), dtype);
    std::copy_n(reinterpret_cast<const unsigned char*>(&bits), size_of(dtype), host.data() + at);
  }
  for (std::size_t at = 0; at < bytes; at += block)
    gpu_.to_device(memory + at, host.data(), std::min(block, bytes - at));
  return memory;
}

void* Arrays::result(std::vector<Block>& among, Index count, DType dtype) {
  const std::size_t bytes = static_cast<std::size_t>(count) * size_of(dtype);
  among.push_back({gpu_.allocate(bytes), bytes});
  return among.back().memory;
}

void Arrays::poison_forward() {
  for (const Block& block : results_) gpu_.fill(block.memory, 0xff, block.bytes);
}
void Arrays::poison_gradients() {
  for (const Block& block : gradients_) gpu_.fill(block.memory, 0xff, block.bytes);
}

Index Arrays::bytes(const Extent& e) {
  const Index rows = Index{e.batch} * e.dim * e.length, size = e.dtype == DType::F32 ? 4 : 2;
  const Index states = Index{e.batch} * e.dim * (chunk_count(e.length) + 1) * e.states * 4;
  return (e.z ? 10 : 6) * rows * size + 2 * states;  // and the workspace's slabs
}

void Arrays::describe(const Extent& e) {
  Common& c = forward_.common;
  c.batch = e.batch, c.dim = e.dim, c.length = e.length, c.states = e.states, c.groups = 1;
  c.dtype = e.dtype;
  c.softplus = true;
  const Index rows = Index{e.batch} * e.dim * e.length, b = Index{e.dim} * e.length, n = e.states;
  const auto sequence = [&](double mean, double scale) {
    return Sequence{make(rows, e.dtype, mean, scale), b, e.length};
  };
  const auto results = [&](std::vector<Block>& among) {
    return SequenceOut{result(among, rows, e.dtype), b, e.length};
  };
  const auto projection = [&] {
    return Projection{make(e.batch * n * e.length, e.dtype, 0, 1), n * e.length, n * e.length, e.length};
  };
  const auto per_channel = [&](Index count, double mean, double scale) {
    return static_cast<float*>(make(count, DType::F32, mean, scale));
  };
  const auto sum = [&](std::vector<Block>& among, Index count) {
    return static_cast<float*>(result(among, count, DType::F32));
  };
  c.u = sequence(0, 1), c.delta = sequence(-3, 1);
  if (e.z) c.z = sequence(0, 1);
  c.A = per_channel(Index{e.dim} * n, -4, 0.5), c.A_dim_stride = n, c.A_state_stride = 1;
  c.B = projection(), c.C = projection();
  c.D = per_channel(e.dim, 1, 0.1), c.delta_bias = per_channel(e.dim, 0, 0.1);
  forward_.out = results(results_);
  if (e.z) forward_.out_z = results(results_);
  const Index channel = (chunk_count(e.length) + 1) * n;
  forward_.x = {sum(results_, Index{e.batch} * e.dim * channel), e.dim * channel, channel, n};
  Backward& back = backward_;
  back.common = c;
  back.dout = sequence(0, 1);
  if (e.z) back.out = {forward_.out.data, b, e.length}, back.dz = results(gradients_);
  back.x = forward_.x;
  back.du = results(gradients_), back.ddelta = results(gradients_);
  back.dA = sum(gradients_, e.dim * n), back.dB = sum(gradients_, e.batch * n * e.length),
  back.dC = sum(gradients_, e.batch * n * e.length);
  back.dD = sum(gradients_, e.dim), back.ddelta_bias = sum(gradients_, e.dim);
}

}  // namespace scankit::selective_scan

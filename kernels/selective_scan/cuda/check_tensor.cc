// SPDX-License-Identifier: Apache-2.0
#include "kernels/selective_scan/cuda/check_tensor.h"

#include <cstring>

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

}  // namespace scankit::selective_scan

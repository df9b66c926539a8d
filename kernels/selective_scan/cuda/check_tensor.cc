// SPDX-License-Identifier: Apache-2.0
#include "kernels/selective_scan/cuda/check_tensor.h"

#include <cmath>
#include <cstring>

namespace scankit::selective_scan {
namespace {

std::uint32_t encode_half(double value) {
  const std::uint32_t sign = std::signbit(value) ? 0x8000u : 0u;
  const double x = std::fabs(value);
  if (std::isnan(value)) return 0x7e00u;
  if (x >= 65520.0) return sign | 0x7c00u;
  if (x < std::ldexp(1.0, -14)) return sign | static_cast<std::uint32_t>(std::nearbyint(std::ldexp(x, 24)));
  const int exponent = std::ilogb(x);
  const auto mantissa = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(x, 10 - exponent)));
  return sign | ((static_cast<std::uint32_t>(exponent + 15) << 10) + (mantissa - 1024));
}
double decode_half(std::uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31), mantissa = static_cast<int>(bits & 1023);
  const double sign = bits >> 15 ? -1.0 : 1.0;
  if (exponent == 31) return mantissa != 0 ? std::nan("") : sign * HUGE_VAL;
  return sign * (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25));
}

}  // namespace

std::uint32_t encode(double value, DType dtype) {
  if (dtype == DType::F16) return encode_half(value);
  const auto f = static_cast<float>(value);
  std::uint32_t bits = 0;
  std::memcpy(&bits, &f, sizeof bits);
  if (dtype == DType::F32) return bits;
  return (bits + 0x7fffu + (bits >> 16 & 1u)) >> 16;
}
double decode(std::uint32_t bits, DType dtype) {
  if (dtype == DType::F16) return decode_half(bits);
  if (dtype == DType::BF16) bits <<= 16;
  float f = 0;
  std::memcpy(&f, &bits, sizeof f);
  return f;
}

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

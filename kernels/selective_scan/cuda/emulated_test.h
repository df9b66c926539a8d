// SPDX-License-Identifier: Apache-2.0
#pragma once
// For tests of emulated device code: memory with guards, and launches run block by block. Included after the
// device code.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>

#include "kernels/selective_scan/cuda/launch.h"

namespace scankit::selective_scan {

using Doubles = std::vector<double>;

// Pages of its own, with unreadable ones before and behind; the bytes end (or begin) where those begin (end).
class Guarded {
 public:
  Guarded(std::size_t bytes, bool at_end) : pages_((bytes + kPage - 1) / kPage + 2) {
    void* memory = mmap(nullptr, pages_ * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    base_ = static_cast<char*>(memory);
    if (pages_ > 2 && mprotect(base_ + kPage, (pages_ - 2) * kPage, PROT_READ | PROT_WRITE) != 0)
      std::abort();
    data_ = at_end ? base_ + (pages_ - 1) * kPage - bytes : base_ + kPage;
    std::memset(data_, 0xff, bytes);  // NaN in every type
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() { munmap(base_, pages_ * kPage); }
  char* data() const { return data_; }

 private:
  static constexpr std::size_t kPage = 4096;
  std::size_t pages_;
  char *base_, *data_;
};

// Rows of fp32 or bf16, with a pad between them that nobody may write. They begin `late` elements behind
// where the memory does.
class Array {
 public:
  Array(DType dtype, Index rows, Index columns, Index pad, bool at_end, Index late = 0)
      : dtype_(dtype),
        rows_(std::size_t(rows)),
        columns_(std::size_t(columns)),
        pitch_(std::size_t(columns + pad)),
        late_(std::size_t(late) * size()),
        memory_(late_ + size() * (rows > 0 ? rows_ * pitch_ - std::size_t(pad) : 0), at_end) {}

  // Returns them as rounded.
  Doubles set(const Doubles& values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const unsigned word = std::bit_cast<unsigned>(float(values[i])), bits = word >> 16;
      std::memcpy(at(i), dtype_ == DType::F32 ? &word : &bits, size());  // bf16: cut off, and exact then
    }
    return get();
  }
  Doubles get() const {
    Doubles values(rows_ * columns_);
    for (std::size_t i = 0; i < values.size(); ++i) {
      unsigned bits = 0;
      std::memcpy(&bits, at(i), size());
      values[i] = std::bit_cast<float>(dtype_ == DType::F32 ? bits : bits << 16);
    }
    return values;
  }
  bool pads_are_untouched() const {
    bool untouched = true;
    for (std::size_t row = 0; row + 1 < rows_; ++row)
      for (std::size_t i = columns_ * size(); i < pitch_ * size(); ++i)
        untouched = untouched && first()[row * pitch_ * size() + i] == '\xff';
    for (std::size_t i = 0; i < late_; ++i) untouched = untouched && memory_.data()[i] == '\xff';
    return untouched;
  }
  template <class T = void>
  T* data() const {
    return reinterpret_cast<T*>(first());
  }
  DType dtype() const { return dtype_; }
  Index pitch() const { return Index(pitch_); }

 private:
  std::size_t size() const { return dtype_ == DType::F32 ? 4 : 2; }
  char* first() const { return memory_.data() + late_; }
  char* at(std::size_t i) const { return first() + (i / columns_ * pitch_ + i % columns_) * size(); }
  DType dtype_;
  std::size_t rows_, columns_, pitch_, late_;
  Guarded memory_;
};

template <class Arguments>
std::function<void()> body_of(void (*kernel)(const Arguments&), const device::Launch& launch) {
  Arguments arguments;
  EXPECT_EQ(launch.argument_bytes, sizeof arguments);
  std::memcpy(&arguments, launch.argument, sizeof arguments);
  return [kernel, arguments] { kernel(arguments); };
}
inline void run_blocks(
    const device::Launch& launch, const std::function<void()>& body,
    const std::function<void()>& before_block = [] {}) {
  for (unsigned block = 0; block < launch.grid_x * launch.grid_y; ++block) {
    blockIdx.x = block % launch.grid_x, blockIdx.y = block / launch.grid_x;
    before_block();
    blockDim.x = launch.block_x;
    emulator::Block(launch.block_x, body, emulator::Block::next_order()).run();
  }
}
// Norm of the difference over the norm.
inline void expect_close(const char* name, const Doubles& got, const Doubles& want, double bound) {
  ASSERT_EQ(got.size(), want.size()) << name;
  double difference = 0, norm = 1e-300;
  for (std::size_t i = 0; i < want.size(); ++i) {
    difference += std::pow(got[i] - want[i], 2);
    norm += want[i] * want[i];
  }
  EXPECT_LT(std::sqrt(difference / norm), bound) << name;
}

}  // namespace scankit::selective_scan

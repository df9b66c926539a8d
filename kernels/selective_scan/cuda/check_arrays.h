// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <vector>

#include "kernels/selective_scan/check_number.h"
#include "kernels/selective_scan/cuda/check_device.h"
#include "kernels/selective_scan/params.h"

namespace scankit::selective_scan {

// A strided array of up to four dimensions in device memory. Bytes between its elements are 0xff (NaN), and
// so are the elements before a kernel writes them.
class Tensor {
 public:
  Tensor(Gpu& gpu, DType dtype, std::array<Index, 4> sizes, std::array<Index, 4> strides, Index shift);
  Tensor(const Tensor&) = delete;
  Tensor& operator=(const Tensor&) = delete;
  ~Tensor();

  void poison();
  std::vector<double> set(const std::vector<double>& values);  // returns them as rounded
  // The elements in order. *untouched: every byte that is not an element's is still 0xff.
  std::vector<double> get(bool* untouched) const;
  // All bytes, pads included.
  std::vector<unsigned char> raw() const;

  template <class T = void>
  T* data() const {
    return reinterpret_cast<T*>(static_cast<unsigned char*>(memory_) +
                                static_cast<std::size_t>(shift_) * size_);
  }
  Index stride(int i) const { return strides_[static_cast<std::size_t>(i)]; }
  std::size_t count() const { return places_.size(); }

 private:
  Gpu& gpu_;
  DType dtype_;
  std::size_t size_, bytes_;
  std::array<Index, 4> strides_;
  Index shift_;
  std::vector<std::size_t> places_;  // byte offsets of the elements
  void* memory_;
};

// The size of a problem to time.
struct Extent {
  int batch, dim, length, states;
  DType dtype;
  bool z;
};

// Contiguous arrays of a training step's calls with D, bias and softplus, in one group, with random contents
// that repeat every megabyte; for timings.
class Arrays {
 public:
  Arrays(Gpu& gpu, const Extent& extent);
  Arrays(const Arrays&) = delete;
  Arrays& operator=(const Arrays&) = delete;
  ~Arrays();

  const Forward& forward() const { return forward_; }
  const Backward& backward() const { return backward_; }  // reads what the forward wrote
  void poison_forward();                                  // all results, with NaN
  void poison_gradients();
  static Index bytes(const Extent& extent);  // about

 private:
  struct Block {
    void* memory;
    std::size_t bytes;
  };
  void* make(Index count, DType dtype, double mean, double scale);
  void* result(std::vector<Block>& among, Index count, DType dtype);
  void describe(const Extent& extent);

  Gpu& gpu_;
  std::vector<Block> inputs_, results_, gradients_;
  Forward forward_ = {};
  Backward backward_ = {};
};

}  // namespace scankit::selective_scan

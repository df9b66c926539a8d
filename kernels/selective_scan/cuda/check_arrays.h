// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "kernels/selective_scan/cuda/check_device.h"
#include "kernels/selective_scan/params.h"

namespace scankit::selective_scan {

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

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <string>
#include <vector>

#include "kernels/selective_scan/cuda/check_arrays.h"
#include "validate/judge/oracle.h"

// What a few channels of a large problem must come out as, in float64, and whether they did.
namespace scankit::selective_scan {

class Sample {
 public:
  Sample(Gpu& gpu, const Arrays& arrays);

  // Of the results of a forward (or a backward) that ran on the arrays. Empty: right.
  std::string judge_forward() const;
  std::string judge_backward() const;

 private:
  using Values = std::vector<double>;

  Values read(const void* data, Index first, Index count, DType dtype) const;
  // Those rows of a sequence, every batch entry.
  Values rows(const void* data) const;
  Values of_channels(const float* data, Index each) const;
  std::string compare(const char* name, const Values& got, const Values& want, DType dtype,
                      double inherited = 0) const;
  double loss_of(const char* name, const Values& want, DType dtype) const;

  Gpu& gpu_;
  const Arrays& arrays_;
  std::vector<int> channels_;
  validate::OracleOutput want_;
  mutable std::map<std::string, double> losses_;  // by rounding, of each result
};

}  // namespace scankit::selective_scan

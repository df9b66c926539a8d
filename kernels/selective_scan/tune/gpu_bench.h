// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/selective_scan/cuda/check_arrays.h"
#include "kernels/selective_scan/tune/contest.h"
#include "kernels/selective_scan/tune/sample.h"

namespace scankit::selective_scan {

// The contest's bench on a GPU. A choice is right if a small random case of the contract is (all results
// and gradients, in two equal runs), a sample of the cell's own channels is, and its dB and dC agree with
// those of the predicted choice.
class GpuBench : public Bench {
 public:
  GpuBench(Gpu& gpu, const device::DeviceFacts& facts) : gpu_(gpu), facts_(facts) {}
  ~GpuBench() override;

  std::string open(const Cell& cell) override;
  std::string judge(const Choice& choice) override;
  double milliseconds(const Choice& choice) override;

 private:
  struct Made {
    Choice choice;
    device::Plan plan;
  };
  device::Plan& plan_of(const Choice& choice);
  void run(const Choice& choice);
  std::string judge_small(const Choice& choice);
  std::vector<float> sums() const;  // dB, then dC
  bool prepare();                   // runs the predicted forward, so that a backward has states and out

  Gpu& gpu_;
  device::DeviceFacts facts_;
  Cell cell_ = {};
  std::string shape_;
  std::unique_ptr<Arrays> arrays_;
  std::unique_ptr<Sample> sample_;
  std::vector<std::unique_ptr<Made>> plans_;
  void* workspace_ = nullptr;
  std::size_t workspace_bytes_ = 0;
  std::vector<float> predicted_sums_;
  std::map<std::string, std::string> small_;  // what was wrong, by kernel
};

}  // namespace scankit::selective_scan

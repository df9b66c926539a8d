// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "kernels/selective_scan/cuda/check.h"
#include "kernels/selective_scan/tune/cells.h"
#include "validate/judge/oracle.h"

// The tuner's measurements on a GPU, and whether what was measured computes right.
namespace scankit::selective_scan {

// What a few channels of a large problem must come out as, in float64, and whether they did.
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

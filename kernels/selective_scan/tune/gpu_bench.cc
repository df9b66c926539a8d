// SPDX-License-Identifier: Apache-2.0
#include "kernels/selective_scan/tune/gpu_bench.h"

#include <cmath>
#include <cstdio>
#include <cstring>

#include "kernels/selective_scan/cuda/check_case.h"

// The arrays of a shape stay on the GPU for its forward and its backward. Plans are kept for each choice,
// so that a timed call only launches.
namespace scankit::selective_scan {

GpuBench::~GpuBench() {
  if (workspace_) gpu_.release(workspace_);
}

// Twice the arrays' size must be free, which leaves room for workspaces.
std::string GpuBench::open(const Cell& cell) {
  cell_ = cell;
  plans_.clear();
  predicted_sums_.clear();
  if (shape_ == shape_of(cell)) return prepare() ? "" : "no plan";
  const Extent extent = {cell.batch, cell.dim, cell.length, cell.states, cell.dtype, true};
  sample_.reset();
  arrays_.reset();
  shape_.clear();
  const Index free = gpu_.free_bytes();
  if (2 * Arrays::bytes(extent) > free) return "not enough memory";
  arrays_ = std::make_unique<Arrays>(gpu_, extent);
  sample_ = std::make_unique<Sample>(gpu_, *arrays_);
  shape_ = shape_of(cell);
  return prepare() ? "" : "no plan";
}

bool GpuBench::prepare() {
  if (!cell_.backward) return true;
  device::Plan plan = {};
  device::Message message;
  Cell forward = cell_;
  forward.backward = false;
  if (!plan_forward_as(arrays_->forward(), predicted_choice(forward, facts_), &plan, &message)) return false;
  gpu_.run(plan);
  run(predicted_choice(cell_, facts_));
  predicted_sums_ = sums();
  return true;
}

// A choice that cannot be planned has a plan without launches. The workspace grows to the largest one that
// any plan needs.
device::Plan& GpuBench::plan_of(const Choice& choice) {
  for (const auto& made : plans_)
    if (std::memcmp(&made->choice, &choice, sizeof choice) == 0) return made->plan;
  plans_.push_back(std::make_unique<Made>(Made{choice, {}}));
  device::Plan& plan = plans_.back()->plan;
  device::Message message;
  const bool planned = cell_.backward ? plan_backward_as(arrays_->backward(), choice, choice, &plan, &message)
                                      : plan_forward_as(arrays_->forward(), choice, &plan, &message);
  if (!planned) plan.launch_count = 0;
  if (plan.workspace_bytes > workspace_bytes_) {
    if (workspace_) gpu_.release(workspace_);
    workspace_bytes_ = plan.workspace_bytes;
    workspace_ = gpu_.allocate(workspace_bytes_);
  }
  return plan;
}

void GpuBench::run(const Choice& choice) { gpu_.run(plan_of(choice)); }

double GpuBench::milliseconds(const Choice& choice) {
  device::Plan& plan = plan_of(choice);
  return gpu_.time(plan, workspace_, 0, 1)[0];
}

std::vector<float> GpuBench::sums() const {
  const Backward& b = arrays_->backward();
  const Common& c = b.common;
  const std::size_t count = static_cast<std::size_t>(c.batch) * static_cast<std::size_t>(c.states) *
                            static_cast<std::size_t>(c.length);
  std::vector<float> values(2 * count);
  gpu_.to_host(values.data(), b.dB, count * sizeof(float));
  gpu_.to_host(values.data() + count, b.dC, count * sizeof(float));
  return values;
}

// The small case is judged once for each kernel, since it does not depend on the cell's size. The results
// of the cell are poisoned first, so that one which is not written shows.
std::string GpuBench::judge(const Choice& choice) {
  const std::string kernel = std::string(cell_.backward ? "backward " : "forward ") +
                             std::string(name_of(cell_.dtype)) + " N" + std::to_string(cell_.states) + " " +
                             std::string(variant_name(cell_.backward, choice.variant)) + "/" +
                             std::to_string(choice.warps) + (choice.segments > 1 ? " cut" : "");
  const auto known = small_.find(kernel);
  const std::string& wrong =
      known != small_.end() ? known->second : small_.emplace(kernel, judge_small(choice)).first->second;
  if (!wrong.empty()) return wrong;
  if (plan_of(choice).launch_count == 0) return "no plan";
  if (!cell_.backward) {
    arrays_->poison_forward();
    run(choice);
    return sample_->judge_forward();
  }
  arrays_->poison_gradients();
  run(choice);
  std::string found = sample_->judge_backward();
  const std::vector<float> got = sums();
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    difference += std::pow(double{got[i]} - double{predicted_sums_[i]}, 2);
    norm += std::pow(double{predicted_sums_[i]}, 2);
  }
  if (!(difference <= 1e-6 * norm)) found += "dB or dC differ from the predicted choice's; ";
  return found;
}

// A small random case whose channels do not fill the last block, and whose length is odd where the variant takes that.
std::string GpuBench::judge_small(const Choice& choice) {
  const Variant& variant = variant_of(cell_.backward, choice.variant);
  CaseShape s = {};
  s.seed = 7;
  s.batch = 2, s.groups = 1, s.states = cell_.states, s.dtype = cell_.dtype;
  s.dim = choice.warps * variant.warp_channels + 3;
  s.length = (choice.segments > 1 ? 421 : 197) - (variant.halves ? 1 : 0);  // 420 and 196 are multiples of 4
  s.softplus = s.z = s.D = s.bias = true;
  Choice cut_small = choice;
  if (choice.segments > 1) cut_small.segments = 3;
  (cell_.backward ? s.backward : s.forward) = &cut_small;
  const CaseVerdict verdict = run_case(gpu_, s);
  return verdict.right ? "" : verdict.text;
}

}  // namespace scankit::selective_scan

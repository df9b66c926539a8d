// SPDX-License-Identifier: Apache-2.0
#include "kernels/selective_scan/tune/gpu_bench.h"

#include <cmath>
#include <cstdio>
#include <cstring>

#include "kernels/selective_scan/check_number.h"
#include "kernels/selective_scan/cuda/check.h"

// Checks the results of a large problem on a few of its channels: the fp64 oracle for all of them
// would take minutes.
namespace scankit::selective_scan {
namespace {

constexpr Index kMostWork = 4000000;  // states over steps, in the oracle

// The relative error, in norm, of rounding the values to the dtype.
double loss(const std::vector<double>& values, DType dtype) {
  double norm = 0, lost = 0;
  for (const double value : values) {
    norm += value * value;
    lost += std::pow(rounded(value, dtype) - value, 2);
  }
  return norm == 0 ? 0 : std::sqrt(lost / norm);
}

}  // namespace

// The first and the last channel and one in the middle, or fewer if the oracle would have too much to
// do. dB and dC need all channels and are checked elsewhere (GpuBench::judge()).
Sample::Sample(Gpu& gpu, const Arrays& arrays) : gpu_(gpu), arrays_(arrays) {
  const Common& c = arrays.forward().common;
  const Index each = Index{c.batch} * c.length * c.states;
  channels_ = {0};
  if (c.dim > 1 && 2 * each <= kMostWork) channels_.push_back(c.dim - 1);
  if (c.dim > 2 && 3 * each <= kMostWork) channels_.push_back(c.dim / 2 + 1 < c.dim - 1 ? c.dim / 2 + 1 : 1);
  validate::OracleInput p;
  p.batch = c.batch, p.dim = static_cast<int>(channels_.size()), p.length = c.length, p.states = c.states;
  p.groups = 1, p.softplus = true;
  p.u = rows(c.u.data), p.delta = rows(c.delta.data);
  if (c.z.data) p.z = rows(c.z.data);
  p.dout = rows(arrays.backward().dout.data);
  p.A = of_channels(c.A, c.states), p.D = of_channels(c.D, 1), p.delta_bias = of_channels(c.delta_bias, 1);
  const Index projection = Index{c.batch} * c.states * c.length;
  p.B = read(c.B.data, 0, projection, c.dtype), p.C = read(c.C.data, 0, projection, c.dtype);
  want_ = validate::run_oracle(p);
}

// `count` elements from number `first` of a device array, decoded.
std::vector<double> Sample::read(const void* data, Index first, Index count, DType dtype) const {
  const std::size_t size = size_of(dtype);
  std::vector<unsigned char> bytes(static_cast<std::size_t>(count) * size);
  gpu_.to_host(bytes.data(), static_cast<const unsigned char*>(data) + static_cast<std::size_t>(first) * size,
               bytes.size());
  Values values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint32_t bits = 0;
    for (std::size_t byte = 0; byte < size; ++byte)
      bits |= static_cast<std::uint32_t>(bytes[i * size + byte]) << (8 * byte);
    values[i] = decode(bits, dtype);
  }
  return values;
}

std::vector<double> Sample::rows(const void* data) const {
  const Common& c = arrays_.forward().common;
  Values all;
  for (int batch = 0; batch < c.batch; ++batch) {
    for (const int channel : channels_) {
      const Values row = read(data, (Index{batch} * c.dim + channel) * c.length, c.length, c.dtype);
      all.insert(all.end(), row.begin(), row.end());
    }
  }
  return all;
}

std::vector<double> Sample::of_channels(const float* data, Index each) const {
  Values all;
  for (const int channel : channels_) {
    const Values row = read(data, channel * each, each, DType::F32);
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

double Sample::loss_of(const char* name, const Values& want, DType dtype) const {
  const auto known = losses_.find(name);
  return known != losses_.end() ? known->second : losses_.emplace(name, loss(want, dtype)).first->second;
}

// "" where the relative error in norm is within the bound: four times the rounding of the exact result,
// plus `inherited` (the rounding of an input such as out), plus a constant. device_check uses the same
// bound. NaN fails.
std::string Sample::compare(const char* name, const Values& got, const Values& want, DType dtype,
                            double inherited) const {
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    difference += (got[i] - want[i]) * (got[i] - want[i]);
    norm += want[i] * want[i];
  }
  const double error = std::sqrt(difference / (norm == 0 ? 1 : norm));
  const bool exact = arrays_.forward().common.dtype == DType::F32;
  const double bound = 4 * (loss_of(name, want, dtype) + inherited) + (exact ? 1e-4 : 1e-3);
  if (error <= bound) return "";
  char text[96];
  std::snprintf(text, sizeof text, "%s is off by %.1e, %.1e is allowed; ", name, error, bound);
  return text;
}

std::string Sample::judge_forward() const {
  const Forward& f = arrays_.forward();
  const Common& c = f.common;
  std::string wrong = compare("out", rows(f.out.data), want_.out, c.dtype);
  if (c.z.data) wrong += compare("out_z", rows(f.out_z.data), want_.out_z, c.dtype);
  Values last;
  for (int batch = 0; batch < c.batch; ++batch) {
    for (const int channel : channels_) {
      const Index end = batch * f.x.batch_stride + (channel + 1) * f.x.dim_stride;
      const Values row = read(f.x.data, end - 2 * c.states, 2 * Index{c.states}, DType::F32);
      for (std::size_t n = 1; n < row.size(); n += 2) last.push_back(row[n]);
    }
  }
  return wrong + compare("the last state", last, want_.last_state, DType::F32);
}

std::string Sample::judge_backward() const {
  const Backward& b = arrays_.backward();
  const Common& c = b.common;
  std::string wrong = compare("du", rows(b.du.data), want_.du, c.dtype) +
                      compare("ddelta", rows(b.ddelta.data), want_.ddelta, c.dtype);
  if (c.z.data)
    wrong += compare("dz", rows(b.dz.data), want_.dz, c.dtype, loss_of("out", want_.out, c.dtype));
  return wrong + compare("dA", of_channels(b.dA, c.states), want_.dA, DType::F32) +
         compare("dD", of_channels(b.dD, 1), want_.dD, DType::F32) +
         compare("ddelta_bias", of_channels(b.ddelta_bias, 1), want_.ddelta_bias, DType::F32);
}

// The arrays of a shape stay on the GPU for its forward and its backward. Plans are kept for each choice,
// so that a timed call only launches.

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

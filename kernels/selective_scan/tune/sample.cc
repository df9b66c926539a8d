// SPDX-License-Identifier: Apache-2.0
#include "kernels/selective_scan/tune/sample.h"

#include <cmath>
#include <cstdio>

#include "kernels/selective_scan/check_number.h"

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

}  // namespace scankit::selective_scan

// SPDX-License-Identifier: Apache-2.0
// levels_test LEVEL: that this processor, real or emulated, has that level and no better one, and that the
// convolution which the dispatcher chooses on it is right, forward and backward, against its definition in
// double. Nothing here chooses an instruction set.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "kernels/causal_conv1d/cpu/conv.h"
#include "kernels/common/cpu.h"
#include "kernels/selective_scan/check_number.h"
#include "validate/cases/random.h"

namespace scankit::causal_conv1d {
namespace {

using Doubles = std::vector<double>;

struct Shape {
  int batch, dim, length, width;
  DType dtype, weight_dtype;
  bool silu, bias, states, channel_last;
};

selective_scan::DType same(DType dtype) { return static_cast<selective_scan::DType>(dtype); }

// (batch, dim, steps) of a dtype, steps or channels last in memory; NaN until it is written.
struct Array {
  DType dtype;
  int dim, steps;
  bool channel_last;
  std::vector<unsigned char> bytes;

  Array(DType type, int batch, int channels, int step_count, bool last)
      : dtype(type), dim(channels), steps(step_count), channel_last(last) {
    bytes.assign(static_cast<std::size_t>(batch * dim * steps) * size(), 0xff);
  }
  std::size_t size() const { return selective_scan::size_of(same(dtype)); }
  Index dim_stride() const { return channel_last ? 1 : steps; }
  Index step_stride() const { return channel_last ? dim : 1; }
  std::size_t count() const { return bytes.size() / size(); }
  std::size_t place(std::size_t i) const {  // of the i-th number in the order (batch, dim, steps)
    const std::size_t row = static_cast<std::size_t>(steps), b = i / (row * static_cast<std::size_t>(dim));
    const auto d = static_cast<Index>(i / row) % dim, t = static_cast<Index>(i % row);
    return (b * row * static_cast<std::size_t>(dim) +
            static_cast<std::size_t>(d * dim_stride() + t * step_stride())) *
           size();
  }
  Doubles fill(std::uint64_t seed) {
    Doubles values(count());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::uint32_t bits = selective_scan::encode(2 * validate::unit(seed, i) - 1, same(dtype));
      std::memcpy(bytes.data() + place(i), &bits, size());
      values[i] = selective_scan::decode(bits, same(dtype));
    }
    return values;
  }
  Doubles get() const {
    Doubles values(count());
    for (std::size_t i = 0; i < values.size(); ++i) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, bytes.data() + place(i), size());
      values[i] = selective_scan::decode(bits, same(dtype));
    }
    return values;
  }
  Signal in() const { return {bytes.data(), Index{dim} * steps, dim_stride(), step_stride()}; }
  SignalOut out() { return {bytes.data(), Index{dim} * steps, dim_stride(), step_stride()}; }
};

double g_worst = 0;

bool close(const char* name, const Doubles& got, const Doubles& want, DType dtype) {
  double difference = 0, norm = 0, rounding = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    difference += std::pow(got[i] - want[i], 2);
    norm += want[i] * want[i];
    rounding += std::pow(selective_scan::rounded(want[i], same(dtype)) - want[i], 2);
  }
  const double ratio = std::sqrt(difference) / (4 * std::sqrt(rounding) + 1e-6 * std::sqrt(norm) + 1e-30);
  if (!(g_worst >= ratio)) g_worst = ratio;
  if (!(ratio <= 1)) std::printf("FAILED: %s is wrong, %.2f of its bound\n", name, ratio);
  return ratio <= 1;
}

struct Trial {
  const Shape& s;
  Array x, initial, dout, dfinal, out, final, dx, dinitial, weight, bias;
  std::vector<float> dweight, dbias;

  explicit Trial(const Shape& shape)
      : s(shape),
        x(of(s.length)),
        initial(of(s.width - 1)),
        dout(of(s.length)),
        dfinal(of(s.width - 1)),
        out(of(s.length)),
        final(of(s.width - 1)),
        dx(of(s.length)),
        dinitial(of(s.width - 1)),
        weight(s.weight_dtype, 1, s.dim, s.width, false),
        bias(s.weight_dtype, 1, s.dim, 1, false),
        dweight(weight.count(), std::nanf("")),
        dbias(bias.count(), std::nanf("")) {}
  Array of(int steps) const { return {s.dtype, s.batch, s.dim, steps, s.channel_last}; }

  const char* compute() {
    Forward f = {};
    Common& c = f.common;
    c.batch = s.batch, c.dim = s.dim, c.length = s.length, c.width = s.width, c.silu = s.silu;
    c.dtype = s.dtype, c.weight_dtype = s.weight_dtype;
    c.x = x.in(), c.weight = weight.bytes.data();
    c.weight_dim_stride = s.width, c.weight_tap_stride = 1;
    if (s.bias) c.bias = bias.bytes.data();
    if (s.states) c.initial = initial.in(), f.final = final.out();
    f.out = out.out();
    if (const char* failure = cpu_forward(f)) return failure;
    Backward b = {};
    b.common = c;
    b.dout = dout.in(), b.dx = dx.out();
    if (s.states) b.dfinal = dfinal.in(), b.dinitial = dinitial.out();
    b.dweight = dweight.data(), b.dweight_dim_stride = s.width, b.dweight_tap_stride = 1;
    if (s.bias) b.dbias = dbias.data();
    return cpu_backward(b);
  }

  bool run(std::uint64_t seed) {
    const Doubles vx = x.fill(seed), vi = initial.fill(seed + 1), vo = dout.fill(seed + 2),
                  vf = dfinal.fill(seed + 3), vw = weight.fill(seed + 4), vb = bias.fill(seed + 5);
    if (const char* failure = compute()) {
      std::printf("FAILED: %s\n", failure);
      return false;
    }
    const auto length = static_cast<std::size_t>(s.length), width = static_cast<std::size_t>(s.width),
               before = width - 1, dim = static_cast<std::size_t>(s.dim);
    Doubles y(vx.size()), last(vi.size()), gx(vx.size()), gi(vi.size()), gw(vw.size()), gb(dim);
    for (std::size_t row = 0; row < static_cast<std::size_t>(s.batch) * dim; ++row) {
      const std::size_t d = row % dim;
      Doubles line(length + before), grad(line.size());
      for (std::size_t i = 0; i < before && s.states; ++i) line[i] = vi[row * before + i];
      for (std::size_t t = 0; t < length; ++t) line[before + t] = vx[row * length + t];
      for (std::size_t t = 0; t < length; ++t) {
        double sum = s.bias ? vb[d] : 0;
        for (std::size_t k = 0; k < width; ++k) sum += vw[d * width + k] * line[t + k];
        const double gate = 1 / (1 + std::exp(-sum));
        y[row * length + t] = s.silu ? sum * gate : sum;
        const double slope = s.silu ? gate * (1 + sum * (1 - gate)) : 1, g = vo[row * length + t] * slope;
        gb[d] += g;
        for (std::size_t k = 0; k < width; ++k)
          gw[d * width + k] += g * line[t + k], grad[t + k] += g * vw[d * width + k];
      }
      for (std::size_t i = 0; i < before && s.states; ++i) {
        last[row * before + i] = line[length + i];
        grad[length + i] += vf[row * before + i];
      }
      for (std::size_t i = 0; i < before; ++i) gi[row * before + i] = grad[i];
      for (std::size_t t = 0; t < length; ++t) gx[row * length + t] = grad[before + t];
    }
    bool right = close("out", out.get(), y, s.dtype) & close("dx", dx.get(), gx, s.dtype) &
                 close("dweight", {dweight.begin(), dweight.end()}, gw, DType::F32);
    if (s.bias) right &= close("dbias", {dbias.begin(), dbias.end()}, gb, DType::F32);
    if (!s.states) return right;
    return right & close("final", final.get(), last, s.dtype) &
           close("dinitial", dinitial.get(), gi, s.dtype);
  }
};

int run(const char* wanted) {
  const char* level = cpu_level_name(cpu_level());
  std::printf("level %s, chosen %s\n", level, cpu_level_name(chosen_cpu_level()));
  if (std::strcmp(level, wanted) != 0 || chosen_cpu_level() != cpu_level()) {
    std::printf("FAILED: expected %s\n", wanted);
    return 1;
  }
  int right = 0, all = 0;
  for (std::uint64_t seed = 0; seed < 90; ++seed, ++all) {
    validate::Stream random(seed);
    const int dims[] = {1, 3, 8, 16, 21, 40}, lengths[] = {1, 2, 5, 31, 32, 33, 70};
    const auto dtype = static_cast<DType>(seed % 3);
    const Shape s = {1 + random.below(2),
                     random.pick(dims),
                     random.pick(lengths),
                     2 + random.below(3),
                     dtype,
                     random.chance(50) ? DType::F32 : dtype,
                     random.chance(60),
                     random.chance(60),
                     random.chance(50),
                     random.chance(50)};
    right += Trial(s).run(1000 * (seed + 1)) ? 1 : 0;
  }
  std::printf("%.2f of the bound at worst\n%d of %d cases right\n", g_worst, right, all);
  return right == all ? 0 : 1;
}

}  // namespace
}  // namespace scankit::causal_conv1d

int main(int count, char** arguments) {
  if (count == 2) return scankit::causal_conv1d::run(arguments[1]);
  std::fprintf(stderr, "usage: %s avx512|avx2|portable|neon\n", arguments[0]);
  return 2;
}

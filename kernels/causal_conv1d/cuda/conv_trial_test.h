// SPDX-License-Identifier: Apache-2.0
#pragma once
// A convolution as the kernels take it, run by its plans on the CPU (emulator.h), and judged by its
// definition in double; the CPU's kernels are judged by it, too.
#include "kernels/causal_conv1d/cuda/emulated_test.h"
//
#include "kernels/causal_conv1d/cpu/conv.h"
#include "kernels/causal_conv1d/cuda/launch.h"

namespace scankit::causal_conv1d {

struct Shape {
  int batch = 2, dim = 2, length = 64, width = 4;
  DType dtype = DType::BF16, weight_dtype = DType::F32;
  bool silu = true, bias = true, states = false, packed = false;
  Layout inputs = {}, outputs = {};
  int warp_tiles = 0;  // not what the plan says, but as in long rows
};

inline std::string text(const Shape& s) {
  char line[200];
  std::snprintf(line, sizeof line,
                "B%d D%d L%d width %d dtype %d/%d silu %d bias %d states %d packed %d in %d+%d*%d tiles %d",
                s.batch, s.dim, s.length, s.width, static_cast<int>(s.dtype),
                static_cast<int>(s.weight_dtype), s.silu, s.bias, s.states, s.packed, s.inputs.skip,
                s.inputs.pad, s.inputs.step, s.warp_tiles);
  return line;
}

// Relative to what rounding to dtype does.
inline void expect_near(const char* name, const Doubles& got, const Doubles& want, DType dtype,
                        double more = 1) {
  double difference = 0, norm = 0, rounding = 0;
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    difference += std::pow(got[i] - want[i], 2), norm += want[i] * want[i];
    rounding += std::pow(selective_scan::rounded(want[i], same(dtype)) - want[i], 2);
  }
  EXPECT_LE(std::sqrt(difference), 1.5 * std::sqrt(rounding) + more * 5e-7 * std::sqrt(norm)) << name;
}

inline std::size_t place(int row, int columns, int column) {
  return std::size_t(row) * std::size_t(columns) + std::size_t(column);
}

struct Answers {
  Doubles out, final, dx, dinitial, dweight, dbias;
  bool operator==(const Answers& other) const {  // NaN where nothing is written
    const auto same = [](const Doubles& a, const Doubles& b) {
      return std::ranges::equal(
          a, b, [](double v, double w) { return v == w || (std::isnan(v) && std::isnan(w)); });
    };
    return same(out, other.out) && same(final, other.final) && same(dx, other.dx) &&
           same(dinitial, other.dinitial) && same(dweight, other.dweight) && same(dbias, other.dbias);
  }
};

class Trial {
 public:
  explicit Trial(const Shape& shape, bool at_end = true)
      : s(shape),
        at_end_(at_end),
        x(of(s.length, s.inputs)),
        dout(of(s.length, s.inputs)),
        out(of(s.length, s.outputs)),
        dx(of(s.length, s.outputs)),
        initial(of(s.width - 1, {})),
        dfinal(of(s.width - 1, {1, 2})),
        final(of(s.width - 1, {3, 1, 2})),
        dinitial(of(s.width - 1, {})),
        weight(s.weight_dtype, 1, s.dim, s.width, {}, at_end),
        bias(s.weight_dtype, 1, s.dim, 1, {}, at_end),
        dweight(DType::F32, 1, s.dim, s.width, {}, at_end),
        dbias(DType::F32, 1, s.dim, 1, {}, at_end),
        vx(x.fill(1)),
        vo(dout.fill(2)),
        vi(initial.fill(3)),
        vf(dfinal.fill(4)),
        vw(weight.fill(5)),
        vb(bias.fill(6)) {
    for (int i = 0; i < s.batch * s.length; ++i)
      numbers.push_back(static_cast<int>(validate::draw(7, std::uint64_t(i / 3)) % 4) - 1);
  }

  void check() {
    SCOPED_TRACE(text(s));
    const Answers want = define(), got = by_device();
    compare(got, want);
    check_other_ways(got);
    if (vx.size() + vw.size() > 0) compare(by_cpu(), want);
  }

  Forward forward() const {
    Forward f = {};
    Common& c = f.common;
    c.batch = s.batch, c.dim = s.dim, c.length = s.length, c.width = s.width, c.silu = s.silu;
    c.dtype = s.dtype, c.weight_dtype = s.weight_dtype, c.x = x.in();
    c.weight = weight.in().data, c.weight_dim_stride = s.width, c.weight_tap_stride = 1;
    if (s.bias) c.bias = bias.in().data;
    if (s.packed) c.sequence = numbers.data();
    if (s.states) c.initial = initial.in(), f.final = final.out();
    f.out = out.out();
    return f;
  }
  Backward backward() const {
    Backward b = {};
    b.common = forward().common;
    b.dout = dout.in(), b.dx = dx.out();
    if (s.states) b.dfinal = dfinal.in(), b.dinitial = dinitial.out();
    b.dweight = static_cast<float*>(dweight.out().data), b.dweight_dim_stride = s.width,
    b.dweight_tap_stride = 1;
    if (s.bias) b.dbias = static_cast<float*>(dbias.out().data);
    return b;
  }

  // Copies that happen early, and what a GPU without them does: the same bits.
  void check_other_ways(const Answers& got) {
    if (rows_of(forward().common, x.in(), dout.in(), out.out(), dx.out()) != Rows::kWhole) return;
    using emulator::Block;
    Block::copies() = Block::kAtOnce;
    EXPECT_TRUE(by_device() == got);
    Block::copies() = Block::kLate;
    takes_copies() = false;
    EXPECT_TRUE(by_device() == got);
    takes_copies() = true;
  }

  Answers by_device() {
    clear();
    device::Plan plan = {};
    device::Message message;
    EXPECT_TRUE(plan_forward(forward(), &plan, &message)) << message.text;
    run<ForwardVectorArguments>(plan);
    EXPECT_TRUE(plan_backward(backward(), &plan, &message)) << message.text;
    run<BackwardVectorArguments>(plan);
    for (const Array* each : {&out, &dx, &final, &dinitial, &dweight, &dbias})
      EXPECT_TRUE(each->outside_is_untouched());
    return results();
  }

  const Shape s;

 private:
  bool at_end_;
  Array of(int steps, const Layout& layout) const {
    return {s.dtype, s.batch, s.dim, steps, layout, at_end_};
  }

 public:
  Array x, dout, out, dx, initial, dfinal, final, dinitial, weight, bias, dweight, dbias;
  Doubles vx, vo, vi, vf, vw, vb;
  std::vector<int> numbers;

 private:
  void clear() {
    for (Array* each : {&out, &dx, &final, &dinitial, &dweight, &dbias}) each->clear();
  }
  Answers results() const {
    return {out.get(), final.get(), dx.get(), dinitial.get(), dweight.get(), dbias.get()};
  }
  Answers by_cpu() {
    clear();
    EXPECT_EQ(cpu_forward(forward()), nullptr);
    EXPECT_EQ(cpu_backward(backward()), nullptr);
    return results();
  }
  void compare(const Answers& got, const Answers& want) const {
    expect_near("out", got.out, want.out, s.dtype);
    expect_near("dx", got.dx, want.dx, s.dtype);
    expect_near("dweight", got.dweight, want.dweight, DType::F32, 16);
    if (s.bias) expect_near("dbias", got.dbias, want.dbias, DType::F32, 16);
    if (!s.states) return;
    EXPECT_EQ(got.final, want.final);
    expect_near("dinitial", got.dinitial, want.dinitial, s.dtype);
  }

  // A vector kernel's plan as of longer rows: more tiles for a warp, fewer parts.
  template <class Arguments>
  void lengthen(device::Plan& plan) const {
    device::Launch& launch = plan.launches[0];
    Arguments arguments;
    std::memcpy(&arguments, launch.argument, sizeof arguments);
    Tiles& tiles = arguments.tiles;
    const std::string kernel = kCudaKernels[launch.kernel].symbol;
    const bool at_once = kernel.ends_with("forward_usual") || kernel.ends_with("forward_whole");
    tiles.warp = std::max(tiles.warp, at_once ? std::min(s.warp_tiles, kWholeTiles) : s.warp_tiles);
    const int block = static_cast<int>(launch.block_x) / 32 * tiles.warp;
    tiles.parts = (s.batch * tiles.row + block - 1) / block;
    launch.grid_y = static_cast<unsigned>(tiles.parts);
    std::memcpy(launch.argument, &arguments, sizeof arguments);
    if (plan.launch_count == 1) return;
    if (tiles.parts == 1) {
      plan.launch_count = 1;
      return;
    }
    BackwardArguments reduction;
    std::memcpy(&reduction, plan.launches[1].argument, sizeof reduction);
    reduction.slabs = tiles.parts;
    std::memcpy(plan.launches[1].argument, &reduction, sizeof reduction);
  }
  template <class Arguments>
  void run(device::Plan& plan) const {
    if (s.warp_tiles > 0) lengthen<Arguments>(plan);
    const selective_scan::Guarded workspace(plan.workspace_bytes, true);
    device::set_workspace(plan, workspace.data());
    for (int i = 0; i < plan.launch_count; ++i) emulate(plan.launches[i]);
  }

  // The definition: see params.h.
  Answers define() const {
    const int before = s.width - 1;
    Answers a = {vx, vi, vx, vi, Doubles(vw.size()), Doubles(vb.size())};
    for (int row = 0; row < s.batch * s.dim; ++row) define_row(a, row, before);
    return a;
  }
  void define_row(Answers& a, int row, int before) const {
    const int b = row / s.dim, d = row % s.dim;
    const auto number = [&](int t) {
      if (!s.packed || s.length == 0) return 0;
      return t >= 0 ? numbers[place(b, s.length, t)] : s.states ? numbers[place(b, s.length, 0)] : -1;
    };
    Doubles line(place(1, s.length, before)), grad(line.size());
    for (int i = 0; i < before && s.states; ++i) line[std::size_t(i)] = vi[place(row, before, i)];
    for (int t = 0; t < s.length; ++t) line[place(1, before, t)] = vx[place(row, s.length, t)];
    for (int t = 0; t < s.length; ++t) {
      const auto at = place(row, s.length, t);
      double y = s.bias ? vb[std::size_t(d)] : 0;
      const auto each_tap = [&](const auto& use) {
        for (int k = 0; k < s.width; ++k)
          if (number(t + k - before) == number(t)) use(place(d, s.width, k), place(1, t, k));
      };
      each_tap([&](std::size_t tap, std::size_t in) { y += vw[tap] * line[in]; });
      const bool padding = s.packed && number(t) < 0;
      const double gate = s.silu ? 1 / (1 + std::exp(-y)) : 1,
                   g = padding ? 0 : vo[at] * (s.silu ? gate * (1 + y * (1 - gate)) : 1);
      a.out[at] = padding ? 0 : y * gate;
      a.dbias[std::size_t(d)] += g;
      each_tap(
          [&](std::size_t tap, std::size_t in) { a.dweight[tap] += g * line[in], grad[in] += g * vw[tap]; });
    }
    for (int i = 0; i < before && s.states; ++i) {
      a.final[place(row, before, i)] = line[place(1, s.length, i)];
      grad[place(1, s.length, i)] += vf[place(row, before, i)];
    }
    for (int i = 0; i < before; ++i) a.dinitial[place(row, before, i)] = grad[std::size_t(i)];
    for (int t = 0; t < s.length; ++t) a.dx[place(row, s.length, t)] = grad[place(1, before, t)];
  }
};

}  // namespace scankit::causal_conv1d

// SPDX-License-Identifier: Apache-2.0
// The single step's device code, through its plan, on the CPU (emulator.h) against the formula in double.
#define SCANKIT_EMULATED
// Each needs what comes before it.
// clang-format off
#include "kernels/selective_scan/cuda/emulator.h"
#include "kernels/selective_scan/cuda/update.cuh"
#include "kernels/selective_scan/cuda/emulated_test.h"
#include "validate/cases/random.h"
// clang-format on

namespace scankit::selective_scan {
namespace {

struct StepShape {
  int batch, dim, states, groups;
  DType dtype, state_dtype, parameter_dtype;
  bool options, transposed;  // x, dt, z and out with dim's stride not 1; A with states' stride not 1
};

class Step {
 public:
  Step(const StepShape& shape, bool at_end) : s_(shape), at_end_(at_end) {}

  void check() {
    Update u = {};
    u.batch = s_.batch, u.dim = s_.dim, u.states = s_.states, u.groups = s_.groups;
    u.dtype = s_.dtype, u.state_dtype = s_.state_dtype, u.softplus = s_.options;
    u.D_dtype = u.bias_dtype = s_.parameter_dtype;
    const Index rows = Index{s_.batch} * s_.dim;
    Array state(s_.state_dtype, rows, s_.states, 3, at_end_), x = channels(), dt = channels(), z = channels(),
                                                              out = channels();
    Array A(DType::F32, s_.transposed ? s_.states : s_.dim, s_.transposed ? s_.dim : s_.states, 1, at_end_);
    Array B(s_.dtype, Index{s_.batch} * s_.groups, s_.states, 1, at_end_),
        C(s_.dtype, Index{s_.batch} * s_.groups, s_.states, 1, at_end_);
    Array D(s_.parameter_dtype, 1, s_.dim, 0, at_end_), bias(s_.parameter_dtype, 1, s_.dim, 0, at_end_);
    u.state = state.data(), u.state_dim_stride = state.pitch(), u.state_batch_stride = s_.dim * state.pitch();
    u.x = in(x), u.dt = in(dt), u.out = {out.data(), u.x.batch_stride, u.x.dim_stride};
    u.A = A.data<float>(), u.A_dim_stride = s_.transposed ? 1 : A.pitch();
    u.A_state_stride = s_.transposed ? A.pitch() : 1;
    u.B = {B.data(), s_.groups * B.pitch(), B.pitch()}, u.C = {C.data(), s_.groups * C.pitch(), C.pitch()};
    if (s_.options) u.z = in(z), u.D = D.data(), u.dt_bias = bias.data();
    const Doubles before = random(state, -1, 1), xs = random(x, -1, 1), dts = random(dt, 0, 0.5),
                  zs = random(z, -2, 2), rates = random(A, -2, -0.1), Bs = random(B, -1, 1),
                  Cs = random(C, -1, 1), Ds = random(D, -1, 1), biases = random(bias, -0.5, 0.5);

    device::Plan plan = {};
    device::Message message;
    ASSERT_TRUE(plan_update(u, {90, 132, 49152, 65536}, &plan, &message)) << message.text;
    ASSERT_EQ(plan.launch_count, 1);
    EXPECT_EQ(plan.workspace_bytes, 0u);
    const bool is_float = s_.dtype == DType::F32;
    EXPECT_STREQ(kCudaKernels[plan.launches[0].kernel].symbol,
                 is_float ? "scankit_update_f32" : "scankit_update_bf16");
    run_blocks(plan.launches[0], is_float ? body_of(&update_kernel<Float>, plan.launches[0])
                                          : body_of(&update_kernel<BFloat>, plan.launches[0]));

    Doubles after, results = out.get();
    for (int b = 0; b < s_.batch; ++b) {
      for (int d = 0; d < s_.dim; ++d) {
        const std::size_t i = s_.transposed ? std::size_t(d * s_.batch + b) : std::size_t(b * s_.dim + d);
        double step = dts[i] + (s_.options ? biases[d] : 0);
        if (s_.options) step = std::log1p(std::exp(step));
        double y = s_.options ? Ds[d] * xs[i] : 0;
        for (int n = 0; n < s_.states; ++n) {
          const std::size_t at = (std::size_t(b) * s_.groups + d / (s_.dim / s_.groups)) * s_.states + n;
          const double rate = rates[s_.transposed ? n * s_.dim + d : d * s_.states + n];
          const double h =
              std::exp(step * rate) * before[(b * s_.dim + d) * s_.states + n] + step * xs[i] * Bs[at];
          after.push_back(h);
          y += h * Cs[at];
        }
        results[i] = s_.options ? y * zs[i] / (1 + std::exp(-zs[i])) : y;
      }
    }
    expect_close("state", state.get(), after, s_.state_dtype == DType::F32 ? 1e-6 : 3e-3);
    expect_close("out", out.get(), results, is_float ? 1e-6 : 3e-3);
    for (const Array* each : {&state, &out}) EXPECT_TRUE(each->pads_are_untouched());
  }

 private:
  Array channels() const {
    return Array(s_.dtype, s_.transposed ? s_.dim : s_.batch, s_.transposed ? s_.batch : s_.dim, 2, at_end_);
  }
  Sequence in(const Array& a) const {
    return {a.data(), s_.transposed ? 1 : a.pitch(), s_.transposed ? a.pitch() : 1};
  }
  Doubles random(Array& a, double low, double high) {
    Doubles values = a.get();
    ++seed_;
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = low + (high - low) * validate::unit(seed_, i);
    return a.set(values);
  }

  StepShape s_;
  bool at_end_;
  std::uint64_t seed_ = 0;
};

constexpr DType kFloat = DType::F32, kShort = DType::BF16;

TEST(StateUpdate, IsRightForEveryMixtureOfTypes) {
  for (const bool at_end : {false, true}) {
    for (const bool options : {false, true}) {
      Step({2, 6, 16, 2, kFloat, kFloat, kFloat, options, !options}, at_end).check();
      Step({2, 6, 16, 2, kShort, kFloat, kFloat, options, options}, at_end).check();
      Step({2, 6, 16, 2, kShort, kShort, kFloat, options, !options}, at_end).check();
      Step({2, 6, 16, 2, kShort, kShort, kShort, options, false}, at_end).check();
    }
  }
}
TEST(StateUpdate, TakesEveryNumberOfStates) {
  for (const int states : {1, 3, 7, 8, 9, 17, 64, 100, 255, 256})
    for (const DType dtype : {kFloat, kShort})
      Step({1, 3, states, 1, dtype, dtype, dtype, true, false}, true).check();
}
TEST(StateUpdate, TakesMoreChannelsThanABlock) {
  Step({2, 131, 5, 1, kFloat, kFloat, kFloat, true, true}, true).check();
  Step({3, 90, 24, 9, kShort, kFloat, kShort, true, false}, true).check();
}

}  // namespace
}  // namespace scankit::selective_scan

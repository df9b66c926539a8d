// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdio>
#include <random>

#include "kernels/selective_scan/cuda/check.h"
#include "kernels/selective_scan/cuda/launch.h"

namespace scankit::selective_scan {
namespace {

using Values = std::vector<double>;

class Step {
 public:
  Step(Gpu& gpu, unsigned seed) : gpu_(gpu), random_(seed) {
    u_.batch = pick({1, 1, 2, 5, 64}), u_.groups = pick({1, 1, 2, 4});
    u_.dim = u_.groups * pick({1, 3, 16, 33, 70, 300});
    u_.states = pick({1, 2, 3, 4, 7, 8, 9, 15, 16, 16, 16, 17, 32, 64, 100, 128, 256});
    u_.dtype = static_cast<DType>(seed % 3);
    u_.state_dtype = either(), u_.D_dtype = either(), u_.bias_dtype = either();
    u_.softplus = coin();
    turned_ = coin(), pad_ = pick({0, 0, 1, 3, 8}), shift_ = pick({0, 0, 0, 1, 3, 8});
    seed_ = seed;
  }

  CaseVerdict run() {
    const Index rows = Index{u_.batch} * u_.dim;
    Tensor state(gpu_, u_.state_dtype, {u_.batch, u_.dim, u_.states, 1},
                 {u_.dim * (u_.states + pad_), u_.states + pad_, 1, 1}, shift_);
    Tensor x = channels(), dt = channels(), z = channels(), out = channels();
    Tensor A(gpu_, DType::F32, {u_.dim, u_.states, 1, 1},
             {turned_ ? 1 : u_.states, turned_ ? u_.dim : 1, 1, 1}, 0);
    Tensor B = projection(), C = projection();
    Tensor D(gpu_, u_.D_dtype, {u_.dim, 1, 1, 1}, {1, 1, 1, 1}, 0),
        bias(gpu_, u_.bias_dtype, {u_.dim, 1, 1, 1}, {1, 1, 1, 1}, 0);
    u_.state = state.data(), u_.state_batch_stride = state.stride(0), u_.state_dim_stride = state.stride(1);
    u_.x = in(x), u_.dt = in(dt), u_.out = {out.data(), out.stride(0), out.stride(1)};
    u_.A = A.data<float>(), u_.A_dim_stride = A.stride(0), u_.A_state_stride = A.stride(1);
    u_.B = {B.data(), B.stride(0), B.stride(1)}, u_.C = {C.data(), C.stride(0), C.stride(1)};
    if (coin()) u_.z = in(z);
    if (coin()) u_.D = D.data();
    if (coin()) u_.dt_bias = bias.data();
    h_ = fill(state, -1, 1), x_ = fill(x, -2, 2), dt_ = fill(dt, u_.softplus ? -3 : 0, 1),
    z_ = fill(z, -3, 3);
    A_ = fill(A, -2, -0.005), B_ = fill(B, -1, 1), C_ = fill(C, -1, 1), D_ = fill(D, -1, 1),
    bias_ = fill(bias, -0.2, 0.3);
    device::DeviceFacts facts;
    device::Message message;
    device::Plan plan;
    device::device_prepare(0, &facts, &message);
    if (!plan_update(u_, facts, &plan, &message)) return {false, message.text};
    gpu_.run(plan);
    expect(static_cast<std::size_t>(rows));
    judge("state", state, h_, h_, u_.state_dtype);
    judge("out", out, out_, size_, u_.dtype);
    char head[128];
    std::snprintf(head, sizeof head,
                  "%s step seed %u: B%d D%d N%d G%d dtype %d state %d:", right_ ? "ok" : "WRONG", seed_,
                  u_.batch, u_.dim, u_.states, u_.groups, static_cast<int>(u_.dtype),
                  static_cast<int>(u_.state_dtype));
    return {right_, head + text_};
  }

 private:
  int pick(std::initializer_list<int> of) {
    return of.begin()[std::uniform_int_distribution<std::size_t>(0, of.size() - 1)(random_)];
  }
  bool coin() { return pick({0, 1}) == 1; }
  DType either() { return coin() ? DType::F32 : u_.dtype; }
  Tensor channels() {
    const Index row = (turned_ ? u_.batch : u_.dim) + pad_;
    return Tensor(gpu_, u_.dtype, {u_.batch, u_.dim, 1, 1}, {turned_ ? 1 : row, turned_ ? row : 1, 1, 1},
                  shift_);
  }
  Tensor projection() {
    const Index row = u_.states + pad_;
    return Tensor(gpu_, u_.dtype, {u_.batch, u_.groups, u_.states, 1}, {row * u_.groups, row, 1, 1}, shift_);
  }
  static Sequence in(const Tensor& t) { return {t.data(), t.stride(0), t.stride(1)}; }
  Values fill(Tensor& t, double low, double high) {
    std::uniform_real_distribution<double> d(low, high);
    Values v(t.count());
    for (double& each : v) each = d(random_);
    return t.set(v);
  }

  // h_ becomes the state after the step.
  void expect(std::size_t rows) {
    const auto dim = static_cast<std::size_t>(u_.dim), states = static_cast<std::size_t>(u_.states);
    const auto groups = static_cast<std::size_t>(u_.groups);
    out_.resize(rows), size_.resize(rows);
    for (std::size_t i = 0; i < rows; ++i) {
      const std::size_t b = i / dim, d = i % dim, group = d / (dim / groups);
      double step = dt_[i] + (u_.dt_bias != nullptr ? bias_[d] : 0);
      if (u_.softplus) step = std::log1p(std::exp(step));
      double y = u_.D != nullptr ? D_[d] * x_[i] : 0, size = std::fabs(y);
      for (std::size_t n = 0; n < states; ++n) {
        double& h = h_[i * states + n];
        const std::size_t at = (b * groups + group) * states + n;
        h = std::exp(step * A_[d * states + n]) * h + step * x_[i] * B_[at];
        y += h * C_[at];
        size += std::fabs(h * C_[at]);
      }
      const double gate = u_.z.data != nullptr ? z_[i] / (1 + std::exp(-z_[i])) : 1;
      out_[i] = y * gate, size_[i] = size * std::fabs(gate);
    }
  }
  // terms: what a sum's terms add up to where none cancels another.
  void judge(const char* name, const Tensor& tensor, const Values& want, const Values& terms, DType dtype) {
    bool untouched = true;
    const Values got = tensor.get(&untouched);
    double difference = 0, norm = 1e-300, rounding = 0, size = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      difference += (got[i] - want[i]) * (got[i] - want[i]);
      norm += want[i] * want[i];
      size += terms[i] * terms[i];
      rounding += std::pow(rounded(want[i], dtype) - want[i], 2);
    }
    const double error = std::sqrt(difference / norm),
                 bound = 1.1 * std::sqrt(rounding / norm) + 2e-6 * std::sqrt(size / norm);
    const bool good = error <= bound && untouched;
    right_ = right_ && good;
    char text[96];
    std::snprintf(text, sizeof text, " %s %.2e%s%s", name, error, good ? "" : "!",
                  untouched ? "" : " (wrote outside)");
    text_ += text;
  }

  Gpu& gpu_;
  std::mt19937_64 random_;
  Update u_ = {};
  unsigned seed_ = 0;
  bool turned_ = false, right_ = true;
  int pad_ = 0, shift_ = 0;
  Values h_, x_, dt_, z_, A_, B_, C_, D_, bias_, out_, size_;
  std::string text_;
};

}  // namespace

CaseVerdict run_step(Gpu& gpu, unsigned seed) { return Step(gpu, seed).run(); }

}  // namespace scankit::selective_scan

// SPDX-License-Identifier: Apache-2.0
#include "kernels/selective_scan/cuda/check_case.h"

#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <random>

#include "kernels/selective_scan/cuda/check_reference.h"
#include "kernels/selective_scan/cuda/check_tensor.h"
#include "kernels/selective_scan/cuda/choice.h"

namespace scankit::selective_scan {
namespace {

std::map<std::string, double> g_worst;

using Values = std::vector<double>;

class Case {
 public:
  Case(Gpu& gpu, const CaseShape& shape) : gpu_(gpu), s_(shape), random_(shape.seed) { make_inputs(); }

  CaseVerdict run() {
    result_ = run_reference(p_);
    forward();
    backward();
    char head[256];
    std::snprintf(head, sizeof head,
                  "%s seed %u: B%d D%d L%d N%d G%d dtype %d%s%s%s%s pad %d shift %d%s%s%s%s%s%s segments %d:",
                  right_ ? "ok" : "WRONG", s_.seed, s_.batch, s_.dim, s_.length, s_.states, s_.groups,
                  static_cast<int>(s_.dtype), s_.softplus ? " softplus" : "", s_.z ? " z" : "",
                  s_.D ? " D" : "", s_.bias ? " bias" : "", s_.pad, s_.shift,
                  s_.channel_major ? " channel-major" : "", s_.A_transposed ? " A^T" : "",
                  s_.wide_x ? " wide-x" : "", s_.without_x ? " no-x" : "", s_.out_z ? " out_z" : "",
                  s_.rounded ? " rounded" : "", s_.segments);
    return {right_, head + text_};
  }

 private:
  using Pointer = std::unique_ptr<Tensor>;

  Pointer sequence() {
    const Index row = s_.length + s_.pad;
    const std::array<Index, 4> strides = s_.channel_major ? std::array<Index, 4>{row, row * s_.batch, 1, 1}
                                                          : std::array<Index, 4>{row * s_.dim, row, 1, 1};
    return std::make_unique<Tensor>(gpu_, s_.dtype, std::array<Index, 4>{s_.batch, s_.dim, s_.length, 1},
                                    strides, s_.shift);
  }
  Pointer projection() {
    const Index row = s_.length + s_.pad;
    return std::make_unique<Tensor>(
        gpu_, s_.dtype, std::array<Index, 4>{s_.batch, s_.groups, s_.states, s_.length},
        std::array<Index, 4>{row * s_.states * s_.groups, row * s_.states, row, 1}, s_.shift);
  }
  Pointer single(Index rows, Index columns, bool transposed, DType dtype = DType::F32) {
    return std::make_unique<Tensor>(
        gpu_, dtype, std::array<Index, 4>{rows, columns, 1, 1},
        std::array<Index, 4>{transposed ? 1 : columns, transposed ? rows : 1, 1, 1}, 0);
  }

  Values normal(std::size_t count, double scale) {
    std::normal_distribution<double> d(0.0, scale);
    Values v(count);
    for (double& x : v) x = d(random_);
    return v;
  }
  Values uniform(std::size_t count, double low, double high) {
    std::uniform_real_distribution<double> d(low, high);
    Values v(count);
    for (double& x : v) x = d(random_);
    return v;
  }

  void make_inputs() {
    p_.batch = s_.batch, p_.dim = s_.dim, p_.length = s_.length, p_.states = s_.states, p_.groups = s_.groups;
    p_.softplus = s_.softplus;
    u_ = sequence(), delta_ = sequence(), z_ = sequence(), dout_ = sequence();
    B_ = projection(), C_ = projection();
    A_ = single(s_.dim, s_.states, s_.A_transposed), D_ = single(s_.dim, 1, false),
    bias_ = single(s_.dim, 1, false);
    p_.u = u_->set(normal(u_->count(), 1));
    p_.delta = delta_->set(s_.softplus ? normal(delta_->count(), 2) : uniform(delta_->count(), 0, 0.5));
    p_.dout = dout_->set(normal(dout_->count(), 1));
    p_.B = B_->set(normal(B_->count(), 1));
    p_.C = C_->set(normal(C_->count(), 1));
    p_.A = A_->set(uniform(A_->count(), -2, -0.005));
    if (s_.z) p_.z = z_->set(normal(z_->count(), 2));
    if (s_.D) p_.D = D_->set(normal(D_->count(), 1));
    if (s_.bias) p_.delta_bias = bias_->set(uniform(bias_->count(), -0.2, 0.3));
  }

  static Sequence in(const Tensor& t) { return {t.data(), t.stride(0), t.stride(1)}; }
  static SequenceOut out(const Tensor& t) { return {t.data(), t.stride(0), t.stride(1)}; }
  static Projection project(const Tensor& t) { return {t.data(), t.stride(0), t.stride(1), t.stride(2)}; }
  Common common() const {
    Common c = {};
    c.batch = s_.batch, c.dim = s_.dim, c.length = s_.length, c.states = s_.states, c.groups = s_.groups;
    c.dtype = s_.dtype;
    c.softplus = s_.softplus;
    c.u = in(*u_), c.delta = in(*delta_);
    if (s_.z) c.z = in(*z_);
    c.A = A_->data<float>(), c.A_dim_stride = A_->stride(0), c.A_state_stride = A_->stride(1);
    c.B = project(*B_), c.C = project(*C_);
    if (s_.D) c.D = D_->data<float>();
    if (s_.bias) c.delta_bias = bias_->data<float>();
    return c;
  }

  // Norm of the difference over the norm, against four times the rounding of the exact result and a floor.
  void judge(const char* name, const Tensor& got_tensor, const Values& want, DType dtype) {
    bool untouched = true;
    const Values got = got_tensor.get(&untouched);
    double difference = 0, norm = 0, rounding = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      difference += (got[i] - want[i]) * (got[i] - want[i]);
      norm += want[i] * want[i];
      rounding += std::pow(rounded(want[i], dtype) - want[i], 2);
    }
    if (norm == 0) norm = 1;
    const double error = std::sqrt(difference / norm);
    const double bound = 4 * std::sqrt(rounding / norm) + (s_.dtype == DType::F32 ? 1e-4 : 1e-3);
    const bool good = error <= bound && untouched && got.size() == want.size();
    if (!(g_worst[name] >= error / bound)) g_worst[name] = error / bound;
    right_ = right_ && good;
    char text[96];
    std::snprintf(text, sizeof text, " %s %.2e%s%s", name, error, good ? "" : "!",
                  untouched ? "" : " (wrote outside)");
    text_ += text;
  }

  // The planner's choice, cut as the case wants it.
  void cut_as_wanted(Choice& choice) const {
    if (s_.segments > 0) choice.segments = s_.segments, choice.pieces = 1 + s_.segments % 2;
  }
  void run_plan(bool ok, device::Plan& plan, const device::Message& message) {
    if (ok) return gpu_.run(plan);
    right_ = false;
    text_ += std::string(" no plan: ") + message.text;
  }

  void forward() {
    const Index chunks = saved_chunks(s_.length), n = s_.states, chunk = s_.wide_x ? 2 * n : n;
    const Index channel = (chunks - 1) * chunk + 2 * n;
    x_ = single(Index{s_.batch} * s_.dim, channel, false);
    out_ = sequence(), out_z_ = sequence();
    Forward f = {};
    f.common = common();
    f.out = out(*out_);
    if (s_.z) f.out_z = out(*out_z_);
    f.x = {x_->data<float>(), s_.dim * channel, channel, chunk};
    device::DeviceFacts facts;
    device::Message message;
    device::Plan plan;
    device::device_prepare(0, &facts, &message);
    Choice choice;
    choose_forward(f.common, facts, &choice);
    cut_as_wanted(choice);
    run_plan(plan_forward_as(f, choice, &plan, &message), plan, message);
    judge("out", *out_, result_.out, s_.dtype);
    if (s_.z) judge("out_z", *out_z_, result_.out_z, s_.dtype);
    // The last state stands at the odd places of the last chunk's row.
    bool ignored = true;
    const Values x = x_->get(&ignored);
    Values last;
    for (Index row = 0; row < Index{s_.batch} * s_.dim; ++row)
      for (Index i = 0; i < n; ++i)
        last.push_back(x[static_cast<std::size_t>(row * channel + (chunks - 1) * chunk + 2 * i + 1)]);
    const Pointer copy = single(static_cast<Index>(last.size()), 1, false);
    copy->set(last);
    judge("last", *copy, result_.last, DType::F32);
    saved_ = f.x;
  }

  void backward() {
    Pointer du = sequence(), ddelta = sequence(), dz = sequence(), out_z = sequence();
    Pointer dA = single(s_.dim, s_.states, false), dD = single(s_.dim, 1, false),
            dbias = single(s_.dim, 1, false);
    const Index rows = Index{s_.batch} * s_.groups * s_.states;
    const DType sum = s_.rounded ? s_.dtype : DType::F32;
    Pointer dB = single(rows, s_.length, false, sum), dC = single(rows, s_.length, false, sum);
    Backward b = {};
    b.common = common();
    b.dout = in(*dout_);
    if (s_.z) b.out = in(*out_), b.dz = out(*dz);
    if (s_.z && s_.out_z) b.out_z = out(*out_z);
    if (!s_.without_x) b.x = saved_;
    b.du = out(*du), b.ddelta = out(*ddelta);
    b.dA = dA->data<float>();
    if (s_.rounded && s_.dtype != DType::F32)
      b.rounded_dB = dB->data(), b.rounded_dC = dC->data();
    else
      b.dB = dB->data<float>(), b.dC = dC->data<float>();
    if (s_.D) b.dD = dD->data<float>();
    if (s_.bias) b.ddelta_bias = dbias->data<float>();
    device::DeviceFacts facts;
    device::Message message;
    device::Plan plan;
    device::device_prepare(0, &facts, &message);
    Choice choice, states;
    choose_backward(b.common, facts, &choice);
    choose_forward(b.common, facts, &states);
    cut_as_wanted(choice), cut_as_wanted(states);
    const std::vector<unsigned char> before = delta_->raw();
    std::vector<std::vector<unsigned char>> first;
    for (int time = 0; time < 2; ++time) {
      for (const Pointer* t : {&du, &ddelta, &dz, &out_z, &dA, &dB, &dC, &dD, &dbias}) (*t)->poison();
      run_plan(plan_backward_as(b, choice, states, &plan, &message), plan, message);
      std::vector<std::vector<unsigned char>> bytes;
      for (const Pointer* t : {&du, &ddelta, &dz, &dA, &dB, &dC, &dD, &dbias}) bytes.push_back((*t)->raw());
      if (time == 1 && bytes != first) right_ = false, text_ += " two runs differ!";
      first = std::move(bytes);
    }
    if (delta_->raw() != before) right_ = false, text_ += " an input changed!";
    judge("du", *du, result_.du, s_.dtype);
    judge("ddelta", *ddelta, result_.ddelta, s_.dtype);
    if (s_.z) judge("dz", *dz, result_.dz, s_.dtype);
    if (s_.z && s_.out_z) judge("out_z'", *out_z, result_.out_z, s_.dtype);
    judge("dA", *dA, result_.dA, DType::F32);
    judge("dB", *dB, result_.dB, sum);
    judge("dC", *dC, result_.dC, sum);
    if (s_.D) judge("dD", *dD, result_.dD, DType::F32);
    if (s_.bias) judge("dbias", *dbias, result_.ddelta_bias, DType::F32);
  }

  Gpu& gpu_;
  const CaseShape& s_;
  std::mt19937_64 random_;
  ReferenceProblem p_;
  ReferenceResult result_;
  Pointer u_, delta_, z_, dout_, B_, C_, A_, D_, bias_, x_, out_, out_z_;
  SavedStates saved_ = {};
  bool right_ = true;
  std::string text_;
};

}  // namespace

CaseShape random_case(unsigned seed, bool small) {
  std::mt19937 random(seed * 7919u + 17u);
  const auto pick = [&](std::initializer_list<int> of) {
    return of.begin()[std::uniform_int_distribution<std::size_t>(0, of.size() - 1)(random)];
  };
  const auto coin = [&] { return pick({0, 1}) == 1; };
  CaseShape s = {};
  s.seed = seed;
  s.dtype = static_cast<DType>(seed % 3);
  s.batch = pick({1, 1, 2, 3});
  s.groups = pick({1, 1, 1, 2, 4});
  s.dim = s.groups * (small ? pick({1, 5, 17}) : pick({1, 3, 8, 16, 20, 33, 70, 130}));
  s.length = small ? pick({1, 7, 33, 70})
                   : pick({1, 2, 3, 7, 31, 32, 33, 49, 64, 96, 127, 128, 129, 196, 257, 512, 1000});
  s.states =
      small ? pick({1, 4, 8, 16, 40}) : pick({1, 2, 3, 4, 5, 8, 9, 15, 16, 16, 16, 16, 17, 32, 64, 100, 256});
  while (Index{s.batch} * s.dim * s.length * s.states > 3000000) s.length = s.length / 2 + 1;
  s.softplus = coin(), s.z = coin(), s.D = coin(), s.bias = coin();
  s.pad = pick({0, 0, 0, 1, 5, 8});
  s.shift = pick({0, 0, 0, 1, 3, 4, 8});
  s.channel_major = coin(), s.A_transposed = coin();
  s.wide_x = coin(), s.without_x = pick({0, 0, 1}) == 1, s.out_z = coin();
  s.segments = pick({0, 0, 2, 3, 7});
  s.rounded = coin();
  return s;
}

CaseVerdict run_case(Gpu& gpu, const CaseShape& shape) { return Case(gpu, shape).run(); }

std::string worst_errors() {
  std::string text;
  for (const auto& [name, worst] : g_worst) {
    char part[64];
    std::snprintf(part, sizeof part, "%s%s %.2f", text.empty() ? "" : ", ", name.c_str(), worst);
    text += part;
  }
  return text + " of its bound";
}

}  // namespace scankit::selective_scan

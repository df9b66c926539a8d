// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <random>

#include "kernels/selective_scan/cuda/check.h"
#include "kernels/selective_scan/cuda/choice.h"
#include "kernels/selective_scan/cuda/launch_parts.h"
#include "validate/judge/oracle.h"

namespace scankit::selective_scan {
namespace {

std::map<std::string, double> g_worst;

using Values = std::vector<double>;

class Case {
 public:
  Case(Gpu& gpu, const CaseShape& shape)
      : gpu_(gpu),
        s_(shape),
        parts_((shape.kind & 4) != 0 ? 2 : 1),
        sequences_(shape.cu_seqlens.empty() ? shape.batch : static_cast<Index>(shape.cu_seqlens.size()) - 1),
        random_(shape.seed) {
    make_inputs();
  }

  CaseVerdict run() {
    if (!s_.garbage) result_ = validate::run_oracle(p_);
    forward();
    backward();
    return {right_, head() + text_};
  }

 private:
  using Pointer = std::unique_ptr<Tensor>;

  std::string head() const {
    char head[320];
    std::snprintf(head, sizeof head,
                  "%s seed %u: B%d D%d L%d N%d G%d dtype %d%s%s%s%s pad %d shift %d%s%s%s%s%s%s segments %d "
                  "kind %d%s%s",
                  right_ ? "ok" : "WRONG", s_.seed, s_.batch, s_.dim, s_.length, s_.states, s_.groups,
                  static_cast<int>(s_.dtype), s_.softplus ? " softplus" : "", s_.z ? " z" : "",
                  s_.D ? " D" : "", s_.bias ? " bias" : "", s_.pad, s_.shift,
                  s_.channel_major ? " channel-major" : "", s_.A_transposed ? " A^T" : "",
                  s_.wide_x ? " wide-x" : "", s_.without_x ? " no-x" : "", s_.out_z ? " out_z" : "",
                  s_.rounded ? " rounded" : "", s_.segments, s_.kind, s_.initial ? " initial" : "",
                  s_.last ? " last" : "");
    std::string text = head;
    if (!s_.cu_seqlens.empty()) text += s_.garbage ? " garbage" : " packed";
    for (const int at : s_.cu_seqlens) text += " " + std::to_string(at);
    return text + ":";
  }

  Pointer sequence() {
    const Index row = s_.length + s_.pad;
    const std::array<Index, 4> strides = s_.channel_major ? std::array<Index, 4>{row, row * s_.batch, 1, 1}
                                                          : std::array<Index, 4>{row * s_.dim, row, 1, 1};
    return std::make_unique<Tensor>(gpu_, s_.dtype, std::array<Index, 4>{s_.batch, s_.dim, s_.length, 1},
                                    strides, s_.shift);
  }
  Pointer projection(bool constant) {
    if (constant) return matrix();
    const Index row = s_.length * parts_ + s_.pad * parts_;
    return std::make_unique<Tensor>(
        gpu_, s_.dtype, std::array<Index, 4>{s_.batch, s_.groups, s_.states, s_.length * parts_},
        std::array<Index, 4>{row * s_.states * s_.groups, row * s_.states, row, 1}, s_.shift * parts_);
  }
  Pointer single(Index rows, Index columns, DType dtype = DType::F32) {
    return std::make_unique<Tensor>(gpu_, dtype, std::array<Index, 4>{rows, columns, 1, 1},
                                    std::array<Index, 4>{columns, 1, 1, 1}, 0);
  }
  // A, and B and C where constant.
  Pointer matrix() {
    const Index numbers = s_.states * parts_;
    return std::make_unique<Tensor>(gpu_, DType::F32, std::array<Index, 4>{s_.dim, s_.states, parts_, 1},
                                    std::array<Index, 4>{s_.A_transposed ? parts_ : numbers,
                                                         s_.A_transposed ? parts_ * s_.dim : parts_, 1, 1},
                                    0);
  }
  Pointer state() { return single(sequences_ * s_.dim, s_.states * parts_); }

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
    p_.complex = parts_ == 2, p_.constant_B = (s_.kind & 2) != 0, p_.constant_C = (s_.kind & 1) != 0;
    p_.cu_seqlens = s_.cu_seqlens;
    u_ = sequence(), delta_ = sequence(), z_ = sequence(), dout_ = sequence();
    B_ = projection(p_.constant_B), C_ = projection(p_.constant_C);
    A_ = matrix(), D_ = single(s_.dim, 1), bias_ = single(s_.dim, 1);
    initial_ = state(), dlast_ = state();
    p_.u = u_->set(normal(u_->count(), 1));
    p_.delta = delta_->set(s_.softplus ? normal(delta_->count(), 2) : uniform(delta_->count(), 0, 0.5));
    p_.dout = dout_->set(normal(dout_->count(), 1));
    p_.B = B_->set(normal(B_->count(), 1));
    p_.C = C_->set(normal(C_->count(), 1));
    p_.A = A_->set(uniform(A_->count(), -2, -0.005));
    if (s_.z) p_.z = z_->set(normal(z_->count(), 2));
    if (s_.D) p_.D = D_->set(normal(D_->count(), 1));
    if (s_.bias) p_.delta_bias = bias_->set(uniform(bias_->count(), -0.2, 0.3));
    if (s_.initial) p_.initial_state = initial_->set(normal(initial_->count(), 1));
    if (s_.last) p_.dlast_state = dlast_->set(normal(dlast_->count(), 1));
    if (s_.cu_seqlens.empty()) return;
    ends_ = single(sequences_ + 1, 1);
    gpu_.to_device(ends_->data(), s_.cu_seqlens.data(), s_.cu_seqlens.size() * sizeof(int));
  }

  static Sequence in(const Tensor& t) { return {t.data(), t.stride(0), t.stride(1)}; }
  static SequenceOut out(const Tensor& t) { return {t.data(), t.stride(0), t.stride(1)}; }
  static void project(const Tensor& t, bool constant, Projection* variable, Matrix* matrix) {
    if (constant) {
      *matrix = {t.data<float>(), t.stride(0), t.stride(1)};
    } else {
      *variable = {t.data(), t.stride(0), t.stride(1), t.stride(2)};
    }
  }
  States states(const Tensor& t) const {
    const Index numbers = s_.states * parts_;
    return {t.data<float>(), s_.dim * numbers, numbers};
  }
  Common common() const {
    Common c = {};
    c.batch = s_.batch, c.dim = s_.dim, c.length = s_.length, c.states = s_.states, c.groups = s_.groups;
    c.dtype = s_.dtype;
    c.softplus = s_.softplus, c.complex = p_.complex;
    c.u = in(*u_), c.delta = in(*delta_);
    if (s_.z) c.z = in(*z_);
    c.A = A_->data<float>(), c.A_dim_stride = A_->stride(0), c.A_state_stride = A_->stride(1);
    project(*B_, p_.constant_B, &c.B, &c.constant_B);
    project(*C_, p_.constant_C, &c.C, &c.constant_C);
    if (s_.initial) c.initial_state = states(*initial_);
    if (ends_) c.packed = {ends_->data<int>(), static_cast<int>(sequences_)};
    if (s_.D) c.D = D_->data<float>();
    if (s_.bias) c.delta_bias = bias_->data<float>();
    return c;
  }

  // Norm of what is lost by rounding over the norm.
  static double loss(const Values& values, DType dtype) {
    double norm = 0, lost = 0;
    for (const double value : values) {
      norm += value * value;
      lost += std::pow(rounded(value, dtype) - value, 2);
    }
    return norm == 0 ? 0 : std::sqrt(lost / norm);
  }
  // Norm of the difference over the norm, against four times the rounding of the exact result, or of a
  // rounded one that it is made from, and a floor.
  void judge(const char* name, const Tensor& got_tensor, const Values& want, DType dtype,
             double inherited = 0) {
    bool untouched = true;
    const Values got = got_tensor.get(&untouched);
    if (s_.garbage) {
      right_ = right_ && untouched;
      if (!untouched) text_ += std::string(" ") + name + " (wrote outside)";
      return;
    }
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      difference += (got[i] - want[i]) * (got[i] - want[i]);
      norm += want[i] * want[i];
    }
    if (norm == 0) norm = 1;
    const double error = std::sqrt(difference / norm);
    const double bound = 4 * (loss(want, dtype) + inherited) + (s_.dtype == DType::F32 ? 1e-4 : 1e-3);
    const bool good = error <= bound && untouched && got.size() == want.size();
    if (!(g_worst[name] >= error / bound)) g_worst[name] = error / bound;
    right_ = right_ && good;
    char text[96];
    std::snprintf(text, sizeof text, " %s %.2e%s%s", name, error, good ? "" : "!",
                  untouched ? "" : " (wrote outside)");
    text_ += text;
  }

  // What the fast kernels take, cut as the case wants it; with states beside the scan one kind of them.
  bool is_plain() const {
    const bool constant = s_.kind >= 1 && s_.kind <= 3 && s_.states <= 16 && s_.length > 0;
    return s_.cu_seqlens.empty() && (constant || (s_.kind == 0 && !s_.initial && !s_.last));
  }
  // The planner's choice, cut as the case wants it.
  void cut_as_wanted(Choice& choice) const {
    if (s_.segments > 0) choice.segments = s_.segments, choice.pieces = 1 + s_.segments % 2;
  }
  // Of so few channels other kernels are predicted to be faster: every second case takes one for rows at odd
  // places, which may be anywhere.
  void take_odd(const Variant* variants, int count, const Common& c, const device::DeviceFacts& facts,
                Choice* choice) const {
    if (has_constant(c) || c.dtype == DType::F32 || s_.seed % 4 > 1) return;
    for (int i = 0; i < count; ++i) {
      const int v = (i + static_cast<int>(s_.seed / 4)) % count;
      if (!variants[v].odd || !can_run(variants[v], variants[v].fewest_warps, c, facts)) continue;
      *choice = {v, variants[v].fewest_warps};
      return;
    }
  }
  Choice forward_choice(const Common& common, const device::DeviceFacts& facts) const {
    if (s_.forward) return *s_.forward;
    Choice choice;
    choose_forward(common, facts, &choice, is_aligned(common, 8));
    take_odd(kForwardVariants, kForwardShipped, common, facts, &choice);
    cut_as_wanted(choice);
    return choice;
  }
  void run_plan(bool ok, device::Plan& plan, const device::Message& message) {
    if (ok) return gpu_.run(plan);
    right_ = false;
    text_ += std::string(" no plan: ") + message.text;
  }

  void forward() {
    const bool packed = !s_.cu_seqlens.empty();
    const Index n = Index{s_.states} * parts_, chunk = s_.wide_x ? 2 * n : n;
    const Index chunks = packed ? packed_chunks(s_.length, sequences_) : saved_chunks(s_.length);
    const Index channel = packed ? chunks * chunk : (chunks - 1) * chunk + 2 * n;
    x_ = single(Index{s_.batch} * s_.dim, channel);
    out_ = sequence(), out_z_ = sequence(), last_ = state();
    Forward f = {};
    f.common = common();
    f.out = out(*out_);
    if (s_.z) f.out_z = out(*out_z_);
    f.x = {x_->data<float>(), s_.dim * channel, channel, chunk};
    if (s_.last) f.last_state = last_->data<float>();
    device::DeviceFacts facts;
    device::Message message;
    device::Plan plan;
    device::device_prepare(0, &facts, &message);
    run_plan(is_plain() ? plan_forward_as(f, forward_choice(f.common, facts), &plan, &message)
                        : plan_forward(f, facts, &plan, &message),
             plan, message);
    judge("out", *out_, result_.out, s_.dtype);
    if (s_.z) judge("out_z", *out_z_, result_.out_z, s_.dtype);
    if (s_.last) judge("last", *last_, result_.last_state, DType::F32);
    if (!packed) judge_saved(channel);
    saved_ = f.x;
  }
  // The last state stands at the odd places of the last chunk's row.
  void judge_saved(Index channel) {
    bool ignored = true;
    const Values x = x_->get(&ignored);
    Values last;
    for (Index row = 0; row < Index{s_.batch} * s_.dim; ++row)
      for (Index i = 0; i < s_.states; ++i)
        for (Index part = 0; part < parts_; ++part)
          last.push_back(
              x[static_cast<std::size_t>((row + 1) * channel + (2 * (i - s_.states) + 1) * parts_ + part)]);
    const Pointer copy = single(static_cast<Index>(last.size()), 1);
    copy->set(last);
    judge("last in x", *copy, result_.last_state, DType::F32);
  }

  DType sum_dtype(bool constant) const { return s_.rounded && !constant ? s_.dtype : DType::F32; }
  struct Gradients {
    Pointer du, ddelta, dz, out_z, dA, dB, dC, dD, dbias, dinitial;
    std::array<const Pointer*, 9> all() const {
      return {&du, &ddelta, &dz, &dA, &dB, &dC, &dD, &dbias, &dinitial};
    }
  };

  void backward() {
    Gradients g;
    for (Pointer* each : {&g.du, &g.ddelta, &g.dz, &g.out_z}) *each = sequence();
    const Index numbers = Index{s_.states} * parts_, rows = Index{s_.batch} * s_.groups * s_.states;
    const auto projection_like = [&](bool constant) {
      return single(constant ? s_.dim : rows, constant ? numbers : s_.length * parts_, sum_dtype(constant));
    };
    g.dA = single(s_.dim, numbers), g.dD = single(s_.dim, 1), g.dbias = single(s_.dim, 1);
    g.dB = projection_like(p_.constant_B), g.dC = projection_like(p_.constant_C);
    g.dinitial = state();
    Backward b = {};
    b.common = common();
    b.dout = in(*dout_);
    if (s_.z) b.out = in(*out_), b.dz = out(*g.dz);
    if (s_.z && s_.out_z) b.out_z = out(*g.out_z);
    if (!s_.without_x) b.x = saved_;
    b.du = out(*g.du), b.ddelta = out(*g.ddelta);
    b.dA = g.dA->data<float>();
    if (sum_dtype(p_.constant_B) == DType::F32)
      b.dB = g.dB->data<float>();
    else
      b.rounded_dB = g.dB->data();
    if (sum_dtype(p_.constant_C) == DType::F32)
      b.dC = g.dC->data<float>();
    else
      b.rounded_dC = g.dC->data();
    if (s_.D) b.dD = g.dD->data<float>();
    if (s_.bias) b.ddelta_bias = g.dbias->data<float>();
    if (s_.last) b.dlast_state = states(*dlast_);
    if (s_.initial) b.dinitial_state = g.dinitial->data<float>();
    run_twice(b, g);
    judge("du", *g.du, result_.du, s_.dtype);
    judge("ddelta", *g.ddelta, result_.ddelta, s_.dtype);
    if (s_.z) judge("dz", *g.dz, result_.dz, s_.dtype, loss(result_.out, s_.dtype));
    if (s_.z && s_.out_z) judge("out_z'", *g.out_z, result_.out_z, s_.dtype, loss(result_.out, s_.dtype));
    judge("dA", *g.dA, result_.dA, DType::F32);
    judge("dB", *g.dB, result_.dB, sum_dtype(p_.constant_B));
    judge("dC", *g.dC, result_.dC, sum_dtype(p_.constant_C));
    if (s_.D) judge("dD", *g.dD, result_.dD, DType::F32);
    if (s_.bias) judge("dbias", *g.dbias, result_.ddelta_bias, DType::F32);
    if (s_.initial) judge("dinitial", *g.dinitial, result_.dinitial_state, DType::F32);
  }
  void run_twice(const Backward& b, const Gradients& g) {
    device::DeviceFacts facts;
    device::Message message;
    device::Plan plan;
    device::device_prepare(0, &facts, &message);
    Choice choice, states;
    if (is_plain()) {
      choose_backward(b.common, facts, &choice, is_aligned(b, 8));
      take_odd(kBackwardVariants, kBackwardShipped, b.common, facts, &choice);
      states = forward_choice(b.common, facts);
    }
    cut_as_wanted(choice);
    if (s_.backward) choice = *s_.backward;
    const std::vector<unsigned char> before = delta_->raw();
    std::vector<std::vector<unsigned char>> first;
    for (int time = 0; time < 2; ++time) {
      for (const Pointer* t : g.all()) (*t)->poison();
      g.out_z->poison();
      run_plan(is_plain() ? plan_backward_as(b, choice, states, &plan, &message)
                          : plan_backward(b, facts, &plan, &message),
               plan, message);
      std::vector<std::vector<unsigned char>> bytes;
      for (const Pointer* t : g.all()) bytes.push_back((*t)->raw());
      if (time == 1 && bytes != first && !s_.garbage) right_ = false, text_ += " two runs differ!";
      first = std::move(bytes);
    }
    if (delta_->raw() != before) right_ = false, text_ += " an input changed!";
  }

  Gpu& gpu_;
  const CaseShape& s_;
  Index parts_, sequences_;
  std::mt19937_64 random_;
  validate::OracleInput p_;
  validate::OracleOutput result_;
  Pointer u_, delta_, z_, dout_, B_, C_, A_, D_, bias_, x_, out_, out_z_, initial_, dlast_, last_, ends_;
  SavedStates saved_ = {};
  bool right_ = true;
  std::string text_;
};

}  // namespace

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

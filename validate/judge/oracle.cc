// SPDX-License-Identifier: Apache-2.0
#include "validate/judge/oracle.h"

#include <cmath>
#include <complex>
#include <cstddef>

// The exact scan and its gradient. With raw = delta + delta_bias and dt = softplus(raw), for each
// channel and step:
//   h[l] = exp(dt[l] A) h[l-1] + dt[l] u[l] B[l]
//   y[l] = D u[l] + scale Re(sum C[l] h[l]),   out_z[l] = y[l] silu(z[l])
// scale is 2 for complex states, of which upstream keeps one of each conjugate pair, else 1. The gradient
// runs from the last step to the first and carries dh. All arithmetic is complex; a real scan has
// imaginary parts of 0.
namespace scankit::validate {
namespace {

using Number = std::complex<double>;  // with imaginary part 0 where the scan is real

// Without overflow on either side. softplus() is the identity above 20, as in torch.
double sigmoid(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }
double softplus(double x) { return x <= 20 ? std::log1p(std::exp(x)) : x; }
double softplus_slope(double x) { return x <= 20 ? sigmoid(x) : 1; }
double silu(double x) { return x * sigmoid(x); }
double silu_slope(double x) { return sigmoid(x) * (1 + x * (1 - sigmoid(x))); }

// A tensor of the parameters as numbers: element i, which is a pair where `complex`.
struct Numbers {
  const std::vector<double>& from;
  bool complex;
  Number operator[](std::size_t i) const {
    return complex ? Number(from[2 * i], from[2 * i + 1]) : Number(from[i]);
  }
};
void add_number(std::vector<double>& to, bool complex, std::size_t i, Number value) {
  if (!complex) {
    to[i] += value.real();
    return;
  }
  to[2 * i] += value.real();
  to[2 * i + 1] += value.imag();
}

// One sequence: steps [begin, end) of a batch element. `entry` is the index of its states.
struct Steps {
  int batch, begin, end, entry;
};

// One channel of one sequence. All states are kept for the way back, so that memory grows with the length:
// the lists of cases bound it.
class Channel {
 public:
  Channel(const OracleInput& in, OracleOutput& out, const Steps& steps, int d)
      : in_(in),
        out_(out),
        A_{in.A, in.complex},
        B_{in.B, in.complex},
        C_{in.C, in.complex},
        scale_(in.complex ? 2 : 1),
        d_(d),
        channel_(std::size_t(steps.entry) * in.dim + d),
        row_((std::size_t(steps.batch) * in.dim + d) * in.length + steps.begin),
        pitch_(in.length),
        group_((std::size_t(steps.batch) * in.groups + d / (in.dim / in.groups)) * in.states * pitch_ +
               steps.begin),
        states_(in.states),
        length_(std::size_t(steps.end) - steps.begin) {}

  void forward() {
    raw_.resize(length_);
    dt_.resize(length_);
    decay_.resize(length_ * states_);
    history_.assign((length_ + 1) * states_, 0);
    for (std::size_t n = 0; n < states_ && !in_.initial_state.empty(); ++n)
      history_[n] = Numbers{in_.initial_state, in_.complex}[channel_ * states_ + n];
    for (std::size_t l = 0; l < length_; ++l) {
      raw_[l] = in_.delta[row_ + l] + (in_.delta_bias.empty() ? 0 : in_.delta_bias[d_]);
      dt_[l] = in_.softplus ? softplus(raw_[l]) : raw_[l];
      double y = in_.D.empty() ? 0 : in_.D[d_] * in_.u[row_ + l];
      for (std::size_t n = 0; n < states_; ++n) {
        const Number a = decay_[l * states_ + n] = power(dt_[l] * A_[d_ * states_ + n]);
        const Number h = a * history_[l * states_ + n] + dt_[l] * in_.u[row_ + l] * B_[at_B(n, l)];
        history_[(l + 1) * states_ + n] = h;
        y += scale_ * (C_[at_C(n, l)] * h).real();
      }
      out_.out[row_ + l] = y;
      if (!in_.z.empty()) out_.out_z[row_ + l] = y * silu(in_.z[row_ + l]);
    }
    for (std::size_t n = 0; n < states_; ++n)
      add_number(out_.last_state, in_.complex, channel_ * states_ + n, history_[length_ * states_ + n]);
  }

  void backward() {
    std::vector<Number> carry(states_, 0);  // conj(a_{l+1}) dh_{l+1}
    for (std::size_t n = 0; n < states_ && !in_.dlast_state.empty(); ++n)
      carry[n] = Numbers{in_.dlast_state, in_.complex}[channel_ * states_ + n];
    for (std::size_t l = length_; l-- > 0;) step_back(l, carry);
    for (std::size_t n = 0; n < states_; ++n)
      add_number(out_.dinitial_state, in_.complex, channel_ * states_ + n, carry[n]);
  }

 private:
  std::size_t at(bool constant, std::size_t n, std::size_t l) const {
    return constant ? d_ * states_ + n : group_ + n * pitch_ + l;
  }
  std::size_t at_B(std::size_t n, std::size_t l) const { return at(in_.constant_B, n, l); }
  std::size_t at_C(std::size_t n, std::size_t l) const { return at(in_.constant_C, n, l); }
  // The complex exponential of a real number costs a sine and a cosine of 0.
  Number power(Number x) const { return in_.complex ? std::exp(x) : std::exp(x.real()); }

  // `carry` is what the steps after l contribute to the gradient of h[l]: conj(a[l+1]) dh[l+1]. Gradients
  // of complex numbers are those of torch: conjugates appear where a real gradient has the plain value.
  void step_back(std::size_t l, std::vector<Number>& carry) {
    const std::size_t i = row_ + l;
    double dy = in_.dout[i];
    if (!in_.z.empty()) {
      out_.dz[i] = dy * out_.out[i] * silu_slope(in_.z[i]);
      dy *= silu(in_.z[i]);
    }
    double du = in_.D.empty() ? 0 : in_.D[d_] * dy;
    double ddt = 0;
    for (std::size_t n = 0; n < states_; ++n) {
      const Number A = A_[d_ * states_ + n], B = B_[at_B(n, l)];
      const Number before = history_[l * states_ + n], after = history_[(l + 1) * states_ + n];
      const Number dh = scale_ * dy * std::conj(C_[at_C(n, l)]) + carry[n];
      carry[n] = std::conj(decay_[l * states_ + n]) * dh;
      const Number rate = carry[n] * std::conj(before);  // of the exponent dt A
      const double input = (dh * std::conj(B)).real();   // of dt u
      add_number(out_.dC, in_.complex, at_C(n, l), scale_ * dy * std::conj(after));
      add_number(out_.dB, in_.complex, at_B(n, l), dh * dt_[l] * in_.u[i]);
      add_number(out_.dA, in_.complex, d_ * states_ + n, dt_[l] * rate);
      du += dt_[l] * input;
      ddt += (std::conj(A) * rate).real() + in_.u[i] * input;
    }
    const double draw = in_.softplus ? ddt * softplus_slope(raw_[l]) : ddt;
    out_.du[i] = du;
    out_.ddelta[i] = draw;
    if (!in_.delta_bias.empty()) out_.ddelta_bias[d_] += draw;
    if (!in_.D.empty()) out_.dD[d_] += dy * in_.u[i];
  }

  const OracleInput& in_;
  OracleOutput& out_;
  Numbers A_, B_, C_;
  double scale_;
  // channel_: of the states. row_: the first element of the row in tensors of steps. group_: the first
  // element in B and C of the group that the channel belongs to. pitch_: elements between the states of
  // B and C.
  std::size_t d_, channel_, row_, pitch_, group_, states_, length_;
  std::vector<double> raw_, dt_;
  std::vector<Number> decay_, history_;
};

}  // namespace

OracleOutput run_oracle(const OracleInput& input) {
  OracleOutput out;
  out.out.resize(input.u.size());
  out.out_z.resize(input.z.size());
  std::vector<Steps> sequences;
  for (int b = 0; b < input.batch && input.cu_seqlens.empty(); ++b)
    sequences.push_back({b, 0, input.length, b});
  for (std::size_t s = 0; s + 1 < input.cu_seqlens.size(); ++s)
    sequences.push_back({0, input.cu_seqlens[s], input.cu_seqlens[s + 1], int(s)});
  out.last_state.resize(sequences.size() * input.dim * input.states * (input.complex ? 2 : 1));
  out.dinitial_state.resize(out.last_state.size());
  out.du.resize(input.u.size());
  out.ddelta.resize(input.delta.size());
  out.dA.resize(input.A.size());
  out.dB.resize(input.B.size());
  out.dC.resize(input.C.size());
  out.dD.resize(input.D.size());
  out.dz.resize(input.z.size());
  out.ddelta_bias.resize(input.delta_bias.size());
  for (const Steps& steps : sequences) {
    for (int d = 0; d < input.dim; ++d) {
      Channel channel(input, out, steps, d);
      channel.forward();
      channel.backward();
    }
  }
  return out;
}

}  // namespace scankit::validate

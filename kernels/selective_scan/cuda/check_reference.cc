// SPDX-License-Identifier: Apache-2.0
#include "kernels/selective_scan/cuda/check_reference.h"

#include <cmath>
#include <complex>
#include <cstddef>
#include <type_traits>

namespace scankit::selective_scan {
namespace {

using std::size_t;

struct Sequence {
  size_t batch, begin, end, entry;
};

// Number: double, or std::complex<double>.
template <class Number>
struct Channel {
  static constexpr bool kComplex = !std::is_same_v<Number, double>;
  static constexpr double kScale = kComplex ? 2 : 1;  // of y

  const ReferenceProblem& p;
  ReferenceResult& r;
  size_t d, states, first, length, row, state, projection;
  std::vector<double> dt, slope, dy;
  std::vector<Number> decay, h;

  Channel(const ReferenceProblem& problem, ReferenceResult& result, const Sequence& s, int channel)
      : p(problem),
        r(result),
        d(static_cast<size_t>(channel)),
        states(static_cast<size_t>(p.states)),
        first(s.begin),
        length(s.end - s.begin),
        row((s.batch * static_cast<size_t>(p.dim) + d) * static_cast<size_t>(p.length) + s.begin),
        state((s.entry * static_cast<size_t>(p.dim) + d) * states) {
    const size_t group = d / static_cast<size_t>(p.dim / p.groups);
    projection = (s.batch * static_cast<size_t>(p.groups) + group) * states;
    dt.resize(length), slope.resize(length), dy.resize(length);
    decay.resize(length * states);
    h.resize((length + 1) * states);
  }

  static Number get(const std::vector<double>& from, size_t i) {
    if constexpr (kComplex)
      return {from[2 * i], from[2 * i + 1]};
    else
      return from[i];
  }
  static void add(std::vector<double>& to, size_t i, Number value) {
    if constexpr (kComplex)
      to[2 * i] += value.real(), to[2 * i + 1] += value.imag();
    else
      to[i] += value;
  }
  static double real(Number a) {
    if constexpr (kComplex)
      return a.real();
    else
      return a;
  }
  // Written out: the library's product looks for NaN.
  static Number times(Number a, Number b) {
    if constexpr (kComplex)
      return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
    else
      return a * b;
  }
  static Number conjugate(Number a) {
    if constexpr (kComplex)
      return std::conj(a);
    else
      return a;
  }
  size_t place(bool constant, size_t n, size_t t) const {
    return constant ? d * states + n : (projection + n) * static_cast<size_t>(p.length) + first + t;
  }

  void forward() {
    for (size_t n = 0; n < states && !p.initial_state.empty(); ++n) h[n] = get(p.initial_state, state + n);
    for (size_t t = 0; t < length; ++t) {
      const double x = p.delta[row + t] + (p.delta_bias.empty() ? 0.0 : p.delta_bias[d]);
      dt[t] = !p.softplus || x > 20 ? x : std::log1p(std::exp(x));
      slope[t] = !p.softplus ? 1.0 : 1.0 / (1.0 + std::exp(-x));
      double y = p.D.empty() ? 0.0 : p.D[d] * p.u[row + t];
      for (size_t n = 0; n < states; ++n) {
        const Number a = std::exp(dt[t] * get(p.A, d * states + n));
        decay[t * states + n] = a;
        const Number next =
            times(a, h[t * states + n]) + dt[t] * p.u[row + t] * get(p.B, place(p.constant_B, n, t));
        h[(t + 1) * states + n] = next;
        y += kScale * real(times(get(p.C, place(p.constant_C, n, t)), next));
      }
      finish(t, y);
    }
    for (size_t n = 0; n < states; ++n) add(r.last, state + n, h[length * states + n]);
  }
  void finish(size_t t, double y) {
    const double dout = p.dout[row + t];
    dy[t] = dout;
    r.out[row + t] = y;
    if (p.z.empty()) return;
    const double z = p.z[row + t], gate = 1.0 / (1.0 + std::exp(-z));
    r.out_z[row + t] = y * z * gate;
    dy[t] = dout * z * gate;
    r.dz[row + t] = dout * y * gate * (1.0 + z * (1.0 - gate));
  }

  void backward() {
    std::vector<Number> carry(states);
    for (size_t n = 0; n < states && !p.dlast_state.empty(); ++n) carry[n] = get(p.dlast_state, state + n);
    for (size_t t = length; t-- > 0;) {
      const double u = p.u[row + t];
      double du = p.D.empty() ? 0.0 : p.D[d] * dy[t], ddt = 0.0;
      if (!p.D.empty()) r.dD[d] += dy[t] * u;
      for (size_t n = 0; n < states; ++n) {
        const size_t at_B = place(p.constant_B, n, t), at_C = place(p.constant_C, n, t);
        const Number A = get(p.A, d * states + n), a = decay[t * states + n];
        const Number dh = kScale * dy[t] * conjugate(get(p.C, at_C)) + carry[n];
        add(r.dC, at_C, kScale * dy[t] * conjugate(h[(t + 1) * states + n]));
        add(r.dB, at_B, dt[t] * u * dh);
        carry[n] = times(dh, conjugate(a));
        const Number rate = times(carry[n], conjugate(h[t * states + n]));
        const double input = real(times(dh, conjugate(get(p.B, at_B))));
        add(r.dA, d * states + n, dt[t] * rate);
        du += dt[t] * input;
        ddt += u * input + real(times(rate, conjugate(A)));
      }
      r.du[row + t] = du;
      r.ddelta[row + t] = ddt * slope[t];
      if (!p.delta_bias.empty()) r.ddelta_bias[d] += ddt * slope[t];
    }
    for (size_t n = 0; n < states; ++n) add(r.dinitial, state + n, carry[n]);
  }
};

template <class Number>
void run_channels(const ReferenceProblem& p, const std::vector<Sequence>& sequences, ReferenceResult& r) {
  for (const Sequence& sequence : sequences) {
    for (int d = 0; d < p.dim; ++d) {
      Channel<Number> channel(p, r, sequence, d);
      channel.forward();
      channel.backward();
    }
  }
}

}  // namespace

ReferenceResult run_reference(const ReferenceProblem& p) {
  std::vector<Sequence> sequences;
  for (size_t b = 0; b < static_cast<size_t>(p.batch) && p.cu_seqlens.empty(); ++b)
    sequences.push_back({b, 0, static_cast<size_t>(p.length), b});
  for (size_t s = 0; s + 1 < p.cu_seqlens.size(); ++s)
    sequences.push_back(
        {0, static_cast<size_t>(p.cu_seqlens[s]), static_cast<size_t>(p.cu_seqlens[s + 1]), s});
  ReferenceResult r;
  const size_t elements = p.u.size();
  r.out.resize(elements);
  if (!p.z.empty()) r.out_z.resize(elements), r.dz.resize(elements);
  r.last.resize(sequences.size() * p.A.size());
  r.dinitial.resize(r.last.size());
  r.du.resize(elements);
  r.ddelta.resize(elements);
  r.dA.resize(p.A.size());
  r.dB.resize(p.B.size());
  r.dC.resize(p.C.size());
  r.dD.resize(p.D.size());
  r.ddelta_bias.resize(p.delta_bias.size());
  if (p.complex) {
    run_channels<std::complex<double>>(p, sequences, r);
  } else {
    run_channels<double>(p, sequences, r);
  }
  return r;
}

}  // namespace scankit::selective_scan

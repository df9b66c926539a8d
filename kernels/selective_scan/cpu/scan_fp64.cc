// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <stdlib.h>

#include "kernels/selective_scan/cpu/scan.h"

// The scan written as plainly as possible, in double and one row at a time. Real and complex scans share
// the code through the types Real and Pair.
namespace scankit::selective_scan {
namespace {

// A real number with the operations that complex ones have.
struct Real {
  double re;
  static constexpr int kParts = 1;
  static constexpr double kOutput = 1;  // y = kOutput Re(sum C h)
  static Real load(const double* at) { return {at[0]}; }
  void add_to(double* at) const { at[0] += re; }
  void store(double* at) const { at[0] = re; }
};
Real operator+(Real a, Real b) { return {a.re + b.re}; }
Real operator*(Real a, Real b) { return {a.re * b.re}; }
Real operator*(double a, Real b) { return {a * b.re}; }
Real conj(Real a) { return a; }
Real exp_of(Real a) { return {exp(a.re)}; }

// A complex number. y is twice the real part, since only one of each conjugate pair is stored.
struct Pair {
  double re, im;
  static constexpr int kParts = 2;
  static constexpr double kOutput = 2;
  static Pair load(const double* at) { return {at[0], at[1]}; }
  void add_to(double* at) const { at[0] += re, at[1] += im; }
  void store(double* at) const { at[0] = re, at[1] = im; }
};
Pair operator+(Pair a, Pair b) { return {a.re + b.re, a.im + b.im}; }
Pair operator*(Pair a, Pair b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
Pair operator*(double a, Pair b) { return {a * b.re, a * b.im}; }
Pair conj(Pair a) { return {a.re, -a.im}; }
Pair exp_of(Pair a) {
  const double size = exp(a.re);
  if (size == 0) return {0, 0};  // whatever the angle is, as C's cexp has it
  return {size * cos(a.im), size * sin(a.im)};
}

double sigmoid(double x) { return 1 / (1 + exp(-x)); }

// One sequence of one channel.
struct Row {
  int sequence, batch, channel, first, steps;
};

double* at(const Array64& a, Index i, Index j = 0, Index k = 0) {
  return a.data + i * a.stride[0] + j * a.stride[1] + k * a.stride[2];
}
double* at(const Scan64&, const Array64& sequence, const Row& row, int t) {
  return at(sequence, row.batch, row.channel, row.first + t);
}
double* at(const Scan64& s, const Projection64& p, const Row& row, int state, int t) {
  const int line = p.constant ? row.channel : row.channel / (s.dim / s.groups);
  return p.data + row.batch * p.batch_stride + line * p.row_stride + state * p.state_stride +
         (row.first + t) * p.step_stride;
}

struct Step {
  double dt, slope, u;  // slope: d dt / d delta
};
// softplus is the identity above 20, as in upstream's module, and so has slope 1 there.
Step step_of(const Scan64& s, const Row& row, int t) {
  const double bias = s.delta_bias.data ? *at(s.delta_bias, row.channel) : 0;
  const double raw = *at(s, s.delta, row, t) + bias, u = *at(s, s.u, row, t);
  if (!s.softplus || raw > 20) return {raw, 1, u};
  return {log1p(exp(raw)), sigmoid(raw), u};
}

template <class Number>
Number initial(const Scan64& s, const Row& row, int n) {
  return s.initial_state.data ? Number::load(at(s.initial_state, row.sequence, row.channel, n)) : Number{};
}
template <class Number>
Number rate(const Scan64& s, const Row& row, int n) {
  return Number::load(at(s.A, row.channel, n));
}

// One step of the recurrence. `before` and `after` may be the same array. Returns y_t.
template <class Number>
double advance(const Scan64& s, const Row& row, int t, const Number* before, Number* after) {
  const Step step = step_of(s, row, t);
  double y = 0;
  for (int n = 0; n < s.states; ++n) {
    const Number a = exp_of(step.dt * rate<Number>(s, row, n));
    after[n] = a * before[n] + (step.dt * step.u) * Number::load(at(s, s.B, row, n, t));
    y += (after[n] * Number::load(at(s, s.C, row, n, t))).re;
  }
  return Number::kOutput * y + (s.D.data ? *at(s.D, row.channel) * step.u : 0);
}

template <class Number>
void forward_row(const Forward64& f, const Row& row, Number* h) {
  const Scan64& s = f.scan;
  for (int n = 0; n < s.states; ++n) h[n] = initial<Number>(s, row, n);
  for (int t = 0; t < row.steps; ++t) {
    const double y = advance(s, row, t, h, h);
    *at(s, f.out, row, t) = y;
    if (!s.z.data) continue;
    const double z = *at(s, s.z, row, t);
    *at(s, f.out_z, row, t) = y * (z * sigmoid(z));
  }
  for (int n = 0; n < s.states; ++n) h[n].store(at(f.last_state, row.sequence, row.channel, n));
}

// The gradient of y_t from that of the gated output; writes dz.
double ungated(const Backward64& b, const Row& row, int t, double y) {
  const Scan64& s = b.scan;
  const double dout = *at(s, b.dout, row, t);
  if (!s.z.data) return dout;
  const double z = *at(s, s.z, row, t), weight = sigmoid(z);
  *at(s, b.dz, row, t) = dout * y * (weight * (1 + z * (1 - weight)));
  return dout * (z * weight);
}

// One step backwards. `carry` comes in as the gradient that later steps pass to h_t, and leaves as what
// h_{t-1} gets. The gradient of a complex number is d/d real part + i d/d imaginary part.
template <class Number>
void reverse(const Backward64& b, const Row& row, int t, double dy, const Number* before, const Number* after,
             Number* carry) {
  const Scan64& s = b.scan;
  const Step step = step_of(s, row, t);
  double d_input = 0, d_dt = 0;
  for (int n = 0; n < s.states; ++n) {
    const Number A = rate<Number>(s, row, n), B = Number::load(at(s, s.B, row, n, t)),
                 C = Number::load(at(s, s.C, row, n, t));
    const Number dh = carry[n] + (Number::kOutput * dy) * conj(C);
    ((Number::kOutput * dy) * conj(after[n])).add_to(at(s, b.dC, row, n, t));
    ((step.dt * step.u) * dh).add_to(at(s, b.dB, row, n, t));
    d_input += (conj(B) * dh).re;
    carry[n] = conj(exp_of(step.dt * A)) * dh;
    const Number q = carry[n] * conj(before[n]);
    (step.dt * q).add_to(at(b.dA, row.channel, n));
    d_dt += (conj(A) * q).re;
  }
  const double ddelta = (d_dt + d_input * step.u) * step.slope;
  *at(s, b.ddelta, row, t) = ddelta;
  *at(s, b.du, row, t) = d_input * step.dt + (s.D.data ? *at(s.D, row.channel) * dy : 0);
  if (s.D.data) *at(b.dD, row.channel) += dy * step.u;
  if (s.delta_bias.data) *at(b.ddelta_bias, row.channel) += ddelta;
}

// Computes all states of the row first and keeps them. `h` has room for the states before each step, those
// after the last one, and the carry; `y` for one number of each step.
template <class Number>
void backward_row(const Backward64& b, const Row& row, Number* h, double* y) {
  const Scan64& s = b.scan;
  const Index count = s.states;
  Number* carry = h + (row.steps + 1) * count;
  for (int n = 0; n < s.states; ++n) {
    h[n] = initial<Number>(s, row, n);
    carry[n] = b.dlast_state.data ? Number::load(at(b.dlast_state, row.sequence, row.channel, n)) : Number{};
  }
  for (int t = 0; t < row.steps; ++t) y[t] = advance(s, row, t, h + t * count, h + (t + 1) * count);
  for (int t = row.steps - 1; t >= 0; --t)
    reverse(b, row, t, ungated(b, row, t, y[t]), h + t * count, h + (t + 1) * count, carry);
  if (!b.dinitial_state.data) return;
  for (int n = 0; n < s.states; ++n) carry[n].store(at(b.dinitial_state, row.sequence, row.channel, n));
}

// Every channel of every sequence.
template <class Function>
void each_row(const Scan64& s, Function function) {
  for (int sequence = 0; sequence < s.sequences; ++sequence) {
    const int* bounds = s.cu_seqlens ? s.cu_seqlens + sequence : nullptr;
    for (int channel = 0; channel < s.dim; ++channel)
      function(Row{sequence, bounds ? 0 : sequence, channel, bounds ? bounds[0] : 0,
                   bounds ? bounds[1] - bounds[0] : s.length});
  }
}

// Calls `function` with memory for that many doubles; an error message if there is none.
template <class Function>
const char* with_memory(Index doubles, Function function) {
  double* memory = static_cast<double*>(malloc(sizeof(double) * static_cast<size_t>(doubles + 1)));
  if (!memory) return "no memory for the float64 scan's states";
  function(memory);
  free(memory);
  return nullptr;
}

template <class Number>
const char* forward_of(const Forward64& f) {
  return with_memory(Index{f.scan.states} * Number::kParts, [&](double* memory) {
    each_row(f.scan, [&](const Row& row) { forward_row(f, row, reinterpret_cast<Number*>(memory)); });
  });
}

template <class Number>
const char* backward_of(const Backward64& b) {
  const Index states = (b.scan.length + Index{2}) * b.scan.states * Number::kParts;
  return with_memory(states + b.scan.length, [&](double* memory) {
    each_row(b.scan, [&](const Row& row) {
      backward_row(b, row, reinterpret_cast<Number*>(memory), memory + states);
    });
  });
}

}  // namespace

const char* forward_fp64(const Forward64& forward) {
  return forward.scan.complex ? forward_of<Pair>(forward) : forward_of<Real>(forward);
}
const char* backward_fp64(const Backward64& backward) {
  return backward.scan.complex ? backward_of<Pair>(backward) : backward_of<Real>(backward);
}

}  // namespace scankit::selective_scan

// SPDX-License-Identifier: Apache-2.0
#include "kernels/selective_scan/cuda/check_reference.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace scankit::selective_scan {
namespace {

struct Channel {
  const ReferenceProblem& p;
  ReferenceResult& r;
  std::size_t b, d, row, projection;  // first elements of (b, d) and of (b, group)
  std::vector<double> dt, slope, decay, h, dy;

  Channel(const ReferenceProblem& problem, ReferenceResult& result, int batch, int channel)
      : p(problem), r(result), b(static_cast<std::size_t>(batch)), d(static_cast<std::size_t>(channel)) {
    const auto length = static_cast<std::size_t>(p.length), states = static_cast<std::size_t>(p.states);
    row = (b * static_cast<std::size_t>(p.dim) + d) * length;
    const std::size_t group = d / static_cast<std::size_t>(p.dim / p.groups);
    projection = (b * static_cast<std::size_t>(p.groups) + group) * states * length;
    dt.resize(length);
    slope.resize(length);
    dy.resize(length);
    decay.resize(length * states);
    h.resize((length + 1) * states);
  }

  void forward() {
    const auto length = static_cast<std::size_t>(p.length), states = static_cast<std::size_t>(p.states);
    for (std::size_t t = 0; t < length; ++t) {
      const double x = p.delta[row + t] + (p.delta_bias.empty() ? 0.0 : p.delta_bias[d]);
      dt[t] = !p.softplus || x > 20 ? x : std::log1p(std::exp(x));
      slope[t] = !p.softplus ? 1.0 : 1.0 / (1.0 + std::exp(-x));
      double y = p.D.empty() ? 0.0 : p.D[d] * p.u[row + t];
      for (std::size_t n = 0; n < states; ++n) {
        const double a = std::exp(dt[t] * p.A[d * states + n]);
        decay[t * states + n] = a;
        const double next = a * h[t * states + n] + dt[t] * p.u[row + t] * p.B[projection + n * length + t];
        h[(t + 1) * states + n] = next;
        y += p.C[projection + n * length + t] * next;
      }
      const double dout = p.dout[row + t];
      dy[t] = dout;
      r.out[row + t] = y;
      if (p.z.empty()) continue;
      const double z = p.z[row + t], gate = 1.0 / (1.0 + std::exp(-z));
      r.out_z[row + t] = y * z * gate;
      dy[t] = dout * z * gate;
      r.dz[row + t] = dout * y * gate * (1.0 + z * (1.0 - gate));
    }
    for (std::size_t n = 0; n < states; ++n)
      r.last[(b * static_cast<std::size_t>(p.dim) + d) * states + n] = h[length * states + n];
  }

  void backward() {
    const auto length = static_cast<std::size_t>(p.length), states = static_cast<std::size_t>(p.states);
    std::vector<double> carry(states, 0.0);
    for (std::size_t t = length; t-- > 0;) {
      const double u = p.u[row + t];
      double du = p.D.empty() ? 0.0 : p.D[d] * dy[t], ddt = 0.0;
      if (!p.D.empty()) r.dD[d] += dy[t] * u;
      for (std::size_t n = 0; n < states; ++n) {
        const std::size_t at = projection + n * length + t;
        const double dh = p.C[at] * dy[t] + carry[n];
        const double a = decay[t * states + n], before = h[t * states + n];
        r.dC[at] += dy[t] * h[(t + 1) * states + n];
        r.dB[at] += dh * dt[t] * u;
        du += dh * dt[t] * p.B[at];
        ddt += dh * (u * p.B[at] + p.A[d * states + n] * a * before);
        r.dA[d * states + n] += dh * dt[t] * a * before;
        carry[n] = dh * a;
      }
      r.du[row + t] = du;
      r.ddelta[row + t] = ddt * slope[t];
      if (!p.delta_bias.empty()) r.ddelta_bias[d] += ddt * slope[t];
    }
  }
};

}  // namespace

ReferenceResult run_reference(const ReferenceProblem& p) {
  ReferenceResult r;
  const std::size_t sequence = p.u.size();
  r.out.resize(sequence);
  if (!p.z.empty()) r.out_z.resize(sequence), r.dz.resize(sequence);
  r.last.resize(static_cast<std::size_t>(p.batch) * p.A.size());
  r.du.resize(sequence);
  r.ddelta.resize(sequence);
  r.dA.resize(p.A.size());
  r.dB.resize(p.B.size());
  r.dC.resize(p.C.size());
  r.dD.resize(p.D.size());
  r.ddelta_bias.resize(p.delta_bias.size());
  for (int b = 0; b < p.batch; ++b) {
    for (int d = 0; d < p.dim; ++d) {
      Channel channel(p, r, b, d);
      channel.forward();
      channel.backward();
    }
  }
  return r;
}

}  // namespace scankit::selective_scan

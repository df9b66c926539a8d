// SPDX-License-Identifier: Apache-2.0
#pragma once
// A problem for the plain kernels of fp32, run on the CPU in choices that a test names and judged by the fp64
// oracle. Included behind entry.cuh, by a test that has declared `memory`, a block's shared memory.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/selective_scan/cuda/choice.h"
#include "kernels/selective_scan/cuda/emulated_launch_test.h"
#include "validate/judge/oracle.h"

namespace scankit::selective_scan {

inline void run_plan(device::Plan& plan) {
  std::vector<float4> workspace(plan.workspace_bytes / sizeof(float4) + 1, {NAN, NAN, NAN, NAN});
  device::set_workspace(plan, workspace.data());
  for (int i = 0; i < plan.launch_count; ++i) emulate(plan.launches[i]);
}

using Floats = std::vector<float>;
using Doubles = std::vector<double>;

// Numbers in [low, high) without pattern, from a counter.
inline Doubles numbers(int count, unsigned seed, double low, double high) {
  Doubles values(static_cast<std::size_t>(count));
  unsigned state = seed * 2654435761u + 1;
  for (double& value : values) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(low + (high - low) * (state >> 8) / 16777216.0);
  }
  return values;
}

struct Shape {
  int batch, dim, length, states, groups;
  bool stateful = false;  // an initial state, the last one, and the gradients of both
  bool gated = true;      // z
};

// A problem as the kernels take it, in memory that they fill.
struct Trial {
  validate::OracleInput p;
  validate::OracleOutput want;
  Floats u, delta, z, A, B, C, D, bias, dout, out, out_z, x, du, ddelta, dz, dA, dB, dC, dD, dbias;
  Floats initial, dlast, last_state, dinitial;
  bool stateful;
  int last_launches = 0;  // of the backward
  Common common = {};
  SavedStates saved = {};

  explicit Trial(const Shape& s, double low_A = -2, double high_A = -0.01) : stateful(s.stateful) {
    p.batch = s.batch, p.dim = s.dim, p.length = s.length, p.states = s.states, p.groups = s.groups;
    p.softplus = true;
    const int sequence = s.batch * s.dim * s.length, projection = s.batch * s.groups * s.states * s.length;
    p.u = numbers(sequence, 1, -1, 1), p.delta = numbers(sequence, 2, -3, 0);
    if (s.gated) p.z = numbers(sequence, 3, -2, 2);
    p.dout = numbers(sequence, 4, -1, 1);
    p.A = numbers(s.dim * s.states, 5, low_A, high_A);
    p.B = numbers(projection, 6, -1, 1), p.C = numbers(projection, 7, -1, 1);
    p.D = numbers(s.dim, 8, -1, 1), p.delta_bias = numbers(s.dim, 9, -0.5, 0.5);
    if (!stateful) return;
    p.initial_state = numbers(s.batch * s.dim * s.states, 10, -1, 1);
    p.dlast_state = numbers(s.batch * s.dim * s.states, 11, -1, 1);
  }

  static float* start(Floats& to, const Doubles& from) {
    to.assign(from.begin(), from.end());
    return to.data();
  }
  Sequence in(Floats& to, const Doubles& from) const {
    return {start(to, from), Index{p.dim} * p.length, p.length};
  }
  SequenceOut empty(Floats& to) const {
    to.assign(p.u.size(), NAN);
    return {to.data(), Index{p.dim} * p.length, p.length};
  }
  static float* empty(Floats& to, std::size_t count) {
    to.assign(count, NAN);
    return to.data();
  }

  States given(Floats& to, const Doubles& from) const {
    return {start(to, from), Index{p.dim} * p.states, p.states};
  }

  void describe() {
    Common& c = common;
    c.batch = p.batch, c.dim = p.dim, c.length = p.length, c.states = p.states, c.groups = p.groups;
    c.softplus = true;
    c.u = in(u, p.u), c.delta = in(delta, p.delta);
    if (!p.z.empty()) c.z = in(z, p.z);
    c.A = start(A, p.A), c.A_dim_stride = p.states, c.A_state_stride = 1;
    const Index row = Index{p.states} * p.length;
    c.B = {start(B, p.B), p.groups * row, row, p.length};
    c.C = {start(C, p.C), p.groups * row, row, p.length};
    c.D = start(D, p.D), c.delta_bias = start(bias, p.delta_bias);
    if (stateful) c.initial_state = given(initial, p.initial_state);
    const Index channel = (saved_chunks(p.length) + 1) * p.states;
    saved = {empty(x, static_cast<std::size_t>(p.batch * p.dim * channel)), p.dim * channel, channel,
             p.states};
  }

  static void judge(const char* name, const Floats& got, const Doubles& expected) {
    double difference = 0, norm = 1e-300;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      difference += std::pow(got[i] - expected[i], 2);
      norm += expected[i] * expected[i];
    }
    EXPECT_LT(std::sqrt(difference / norm), 5e-6) << name;
  }

  void forward(const Choice& choice) {
    Forward f = {};
    f.common = common;
    f.out = empty(out), f.x = saved;
    if (!p.z.empty()) f.out_z = empty(out_z);
    if (stateful) f.last_state = empty(last_state, p.initial_state.size());
    device::Plan plan = {};
    device::Message message;
    ASSERT_TRUE(plan_forward_as(f, choice, &plan, &message)) << message.text;
    ASSERT_EQ(plan.launch_count, choice.segments > 1 ? 2 : 1);
    run_plan(plan);
  }
  void backward(const Choice& choice, const Choice& states, bool with_x) {
    Backward b = {};
    b.common = common;
    b.dout = in(dout, p.dout), b.out = {out.data(), Index{p.dim} * p.length, p.length};
    if (with_x) b.x = saved;
    b.du = empty(du), b.ddelta = empty(ddelta);
    if (!p.z.empty()) b.dz = empty(dz);
    b.dA = empty(dA, p.A.size()), b.dB = empty(dB, p.B.size()), b.dC = empty(dC, p.C.size());
    b.dD = empty(dD, p.D.size()), b.ddelta_bias = empty(dbias, p.D.size());
    if (stateful) b.dlast_state = given(dlast, p.dlast_state);
    if (stateful) b.dinitial_state = empty(dinitial, p.initial_state.size());
    device::Plan plan = {};
    device::Message message;
    ASSERT_TRUE(plan_backward_as(b, choice, states, &plan, &message)) << message.text;
    last_launches = plan.launch_count;
    run_plan(plan);
  }
  Floats last() const {
    Floats values;
    const std::size_t states = static_cast<std::size_t>(p.states),
                      row = x.size() / (p.A.size() * p.batch) * states;
    for (std::size_t channel = 0; channel < x.size() / row; ++channel)
      for (std::size_t n = 0; n < states; ++n)
        values.push_back(x[(channel + 1) * row - 2 * states + 2 * n + 1]);
    return values;
  }

  void check(const Choice& forward_choice, const Choice& backward_choice, bool with_x) {
    want = validate::run_oracle(p);
    describe();
    forward(forward_choice);
    judge("out", out, want.out);
    if (!p.z.empty()) judge("out_z", out_z, want.out_z);
    judge("last", last(), want.last_state);
    if (stateful) judge("last_state", last_state, want.last_state);
    backward(backward_choice, forward_choice, with_x);
    judge("du", du, want.du);
    judge("ddelta", ddelta, want.ddelta);
    if (!p.z.empty()) judge("dz", dz, want.dz);
    judge("dA", dA, want.dA);
    judge("dB", dB, want.dB);
    judge("dC", dC, want.dC);
    judge("dD", dD, want.dD);
    judge("ddelta_bias", dbias, want.ddelta_bias);
    if (stateful) judge("dinitial_state", dinitial, want.dinitial_state);
  }
};

}  // namespace scankit::selective_scan

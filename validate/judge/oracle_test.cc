// SPDX-License-Identifier: Apache-2.0
#include "validate/judge/oracle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "validate/cases/random.h"

namespace scankit::validate {
namespace {

std::vector<double> numbers(std::size_t count, std::uint64_t seed, double low, double high) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = low + (high - low) * unit(seed, i);
  return values;
}

struct Kind {
  bool complex = false, constant_B = false, constant_C = false;
};

OracleInput small(int groups, bool with_options, bool softplus, Kind kind = {}) {
  OracleInput in;
  in.complex = kind.complex;
  in.constant_B = kind.constant_B;
  in.constant_C = kind.constant_C;
  in.batch = 2;
  in.dim = 4;
  in.length = 5;
  in.states = 3;
  in.groups = groups;
  in.softplus = softplus;
  const std::size_t sequence = 2 * 4 * 5, parts = kind.complex ? 2 : 1;
  const std::size_t variable = std::size_t(2) * groups * 3 * 5 * parts, constant = 4 * 3 * parts;
  in.u = numbers(sequence, 1, -1, 1);
  in.delta = numbers(sequence, 2, -0.5, 1.5);
  in.A = numbers(constant, 3, -2, 0.1);
  in.B = numbers(kind.constant_B ? constant : variable, 4, -1, 1);
  in.C = numbers(kind.constant_C ? constant : variable, 5, -1, 1);
  in.dout = numbers(sequence, 6, -1, 1);
  if (with_options) {
    in.D = numbers(4, 7, -1, 1);
    in.z = numbers(sequence, 8, -2, 2);
    in.delta_bias = numbers(4, 9, -0.5, 0.5);
  }
  return in;
}

double loss(const OracleInput& in) {
  const OracleOutput out = run_oracle(in);
  const std::vector<double>& last = in.z.empty() ? out.out : out.out_z;
  double sum = 0;
  for (std::size_t i = 0; i < last.size(); ++i) sum += last[i] * in.dout[i];
  for (std::size_t i = 0; i < in.dlast_state.size(); ++i) sum += out.last_state[i] * in.dlast_state[i];
  return sum;
}

// Central differences of fourth order: their own error is h^4 times a fifth derivative, and 1e-16 of the loss
// over h.
double numeric_gradient(const OracleInput& in, std::vector<double> OracleInput::*input, std::size_t i) {
  constexpr double kStep = 1e-4;
  const auto at = [&](double step) {
    OracleInput moved = in;
    (moved.*input)[i] += step;
    return loss(moved);
  };
  return (8 * (at(kStep) - at(-kStep)) - (at(2 * kStep) - at(-2 * kStep))) / (12 * kStep);
}

void expect_gradient(const OracleInput& in, std::vector<double> OracleInput::*input,
                     const std::vector<double>& gradient, const char* name) {
  ASSERT_EQ((in.*input).size(), gradient.size()) << name;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const double numeric = numeric_gradient(in, input, i);
    EXPECT_NEAR(gradient[i], numeric, 1e-8 * (1 + std::fabs(numeric))) << name << " element " << i;
  }
}

void expect_all_gradients(const OracleInput& in) {
  const OracleOutput out = run_oracle(in);
  expect_gradient(in, &OracleInput::u, out.du, "u");
  expect_gradient(in, &OracleInput::delta, out.ddelta, "delta");
  expect_gradient(in, &OracleInput::A, out.dA, "A");
  expect_gradient(in, &OracleInput::B, out.dB, "B");
  expect_gradient(in, &OracleInput::C, out.dC, "C");
  expect_gradient(in, &OracleInput::D, out.dD, "D");
  expect_gradient(in, &OracleInput::z, out.dz, "z");
  expect_gradient(in, &OracleInput::delta_bias, out.ddelta_bias, "delta_bias");
  if (!in.initial_state.empty())
    expect_gradient(in, &OracleInput::initial_state, out.dinitial_state, "initial_state");
}

TEST(Oracle, GradientsAreThoseOfFiniteDifferencesWithEveryOption) {
  expect_all_gradients(small(1, true, true));
}
TEST(Oracle, GradientsAreThoseOfFiniteDifferencesWithGroups) { expect_all_gradients(small(2, true, true)); }
TEST(Oracle, GradientsAreThoseOfFiniteDifferencesWithAGroupAChannel) {
  expect_all_gradients(small(4, true, false));
}
TEST(Oracle, GradientsAreThoseOfFiniteDifferencesWithoutOptions) {
  expect_all_gradients(small(2, false, false));
}
TEST(Oracle, GradientsAreThoseOfFiniteDifferencesBeyondSoftplusThreshold) {
  OracleInput in = small(1, false, true);
  in.A = numbers(12, 3, -0.1, 0);
  for (std::size_t i = 0; i < in.delta.size(); i += 3) in.delta[i] += 22;
  expect_all_gradients(in);
}

// Every part of every complex number is moved by itself: d/d real part + i d/d imaginary part.
TEST(Oracle, GradientsAreThoseOfFiniteDifferencesInEveryKind) {
  for (int kind = 1; kind < 8; ++kind) {
    SCOPED_TRACE(kind);
    const Kind each{(kind & 4) != 0, (kind & 2) != 0, (kind & 1) != 0};
    expect_all_gradients(small(1, true, true, each));
    expect_all_gradients(small(each.constant_B ? 1 : 2, false, false, each));
  }
}

TEST(Oracle, GradientsOfTheStatesAreThoseOfFiniteDifferencesInEveryKind) {
  for (int kind = 0; kind < 8; ++kind) {
    SCOPED_TRACE(kind);
    OracleInput in = small(1, true, true, {(kind & 4) != 0, (kind & 2) != 0, (kind & 1) != 0});
    in.initial_state = numbers(2 * in.A.size(), 10, -1, 1);
    in.dlast_state = numbers(2 * in.A.size(), 11, -1, 1);
    expect_all_gradients(in);
  }
}

// Two packed sequences are one whose second part starts from the first one's last state.
TEST(Oracle, PackedSequencesContinueEachOther) {
  for (int kind = 0; kind < 8; ++kind) {
    SCOPED_TRACE(kind);
    OracleInput whole = small(1, true, true, {(kind & 4) != 0, (kind & 2) != 0, (kind & 1) != 0});
    whole.batch = 1;
    for (auto sequence : {&OracleInput::u, &OracleInput::delta, &OracleInput::z, &OracleInput::dout})
      (whole.*sequence).resize(20);
    const std::size_t states = whole.A.size();
    whole.initial_state = numbers(states, 10, -1, 1);
    whole.dlast_state = numbers(states, 11, -1, 1);
    const OracleOutput want = run_oracle(whole);

    OracleInput packed = whole;
    packed.cu_seqlens = {0, 2, 2, 5};
    packed.initial_state.resize(3 * states);
    packed.dlast_state.assign(3 * states, 0);
    const OracleOutput first = run_oracle(packed);
    std::copy_n(first.last_state.begin(), states,
                packed.initial_state.begin() + static_cast<std::ptrdiff_t>(2 * states));
    packed.dlast_state.assign(2 * states, 0);
    packed.dlast_state.insert(packed.dlast_state.end(), whole.dlast_state.begin(), whole.dlast_state.end());
    const OracleOutput second = run_oracle(packed);
    std::copy_n(second.dinitial_state.begin() + static_cast<std::ptrdiff_t>(2 * states), states,
                packed.dlast_state.begin());
    const OracleOutput got = run_oracle(packed);
    const auto same = [](const std::vector<double>& one, const std::vector<double>& other,
                         std::size_t count) {
      for (std::size_t i = 0; i < count; ++i) EXPECT_NEAR(one[i], other[i], 1e-12);
    };
    same(got.out_z, want.out_z, want.out_z.size());
    same({got.last_state.begin() + static_cast<std::ptrdiff_t>(2 * states), got.last_state.end()},
         want.last_state, states);
    same(got.dA, want.dA, states);
    same(got.ddelta, want.ddelta, want.ddelta.size());
    same(got.dB, want.dB, want.dB.size());
    same(got.dC, want.dC, want.dC.size());
    same(got.dinitial_state, want.dinitial_state, states);
  }
}

TEST(Oracle, OneComplexStepIsTheFormula) {
  OracleInput in;
  in.complex = true;
  in.length = 2;
  in.u = {2, 0};
  in.delta = {0.5, 1};
  in.A = {-1, 3};
  in.B = {3, -4, 0, 0};
  in.C = {5, 7, 1, 0};
  in.dout = {0, 0};
  const OracleOutput out = run_oracle(in);
  EXPECT_DOUBLE_EQ(out.out[0], 2 * (5 * 3 - 7 * -4));
  EXPECT_DOUBLE_EQ(out.last_state[0], std::exp(-1) * (3 * std::cos(3) + 4 * std::sin(3)));
  EXPECT_DOUBLE_EQ(out.last_state[1], std::exp(-1) * (3 * std::sin(3) - 4 * std::cos(3)));
  EXPECT_DOUBLE_EQ(out.out[1], 2 * out.last_state[0]);
}

TEST(Oracle, AConstantProjectionIsAVariableOneThatStays) {
  OracleInput constant = small(1, true, true, {false, true, true}), variable = constant;
  constant.dim = variable.dim = 1;
  for (OracleInput* in : {&constant, &variable}) {
    for (auto* values : {&in->u, &in->delta, &in->z, &in->dout}) values->resize(10);
    for (auto* values : {&in->A, &in->B, &in->C}) values->resize(3);
    in->D.resize(1), in->delta_bias.resize(1);
  }
  variable.constant_B = variable.constant_C = false;
  for (std::vector<double>* values : {&variable.B, &variable.C}) {
    std::vector<double> steps;
    for (int b = 0; b < 2; ++b)
      for (int n = 0; n < 3; ++n) steps.insert(steps.end(), 5, (*values)[n]);
    *values = steps;
  }
  const OracleOutput one = run_oracle(constant), other = run_oracle(variable);
  EXPECT_EQ(one.out_z, other.out_z);
  EXPECT_EQ(one.last_state, other.last_state);
  EXPECT_EQ(one.ddelta, other.ddelta);
}

TEST(Oracle, OneStepIsTheFormula) {
  OracleInput in;
  in.u = {2};
  in.delta = {0.5};
  in.A = {-1};
  in.B = {3};
  in.C = {5};
  in.D = {7};
  in.z = {1};
  in.dout = {1};
  const OracleOutput out = run_oracle(in);
  EXPECT_DOUBLE_EQ(out.last_state[0], 0.5 * 2 * 3);
  EXPECT_DOUBLE_EQ(out.out[0], 5 * 3.0 + 7 * 2);
  EXPECT_DOUBLE_EQ(out.out_z[0], 29 / (1 + std::exp(-1.0)));
}

TEST(Oracle, StateDecaysByTheStepItEnters) {
  OracleInput in;
  in.length = 2;
  in.u = {1, 0};
  in.delta = {1, 2};
  in.A = {-0.5};
  in.B = {1, 1};
  in.C = {1, 1};
  in.dout = {0, 0};
  EXPECT_DOUBLE_EQ(run_oracle(in).out[1], std::exp(-1.0));
}

}  // namespace
}  // namespace scankit::validate

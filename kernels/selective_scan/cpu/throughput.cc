// SPDX-License-Identifier: Apache-2.0
// The fraction of one core's throughput that the kernels reach: the core's multiplications, fused
// multiply-adds and exp2 in registers, measured, against a scan's time and what it has to compute.
//
//   scankit_cpu_throughput [ROUNDS]
//
// Each round measures everything once, so that what else the machine does meets all of it; medians of the
// thread's own time.
#include "kernels/selective_scan/cpu/throughput.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kernels/common/cpu.h"
#include "kernels/selective_scan/cpu/scan.h"

namespace scankit::selective_scan {
namespace {

// What an element and state costs, for real A and variable B and C, counted in forward_task.h and
// backward_scan.h. Forward: dt A and input B; h and y. Backward: those of h once more, C dy + carry, dy h,
// carry a, dh input, q, three sums, and an addition each for the sums of dB and dC over the channels. What
// is done once for each element (softplus, the gate, transposing) is not counted, so that the real
// fractions are a little higher.
struct Work {
  double multiplications, fmas, exps;
};
constexpr Work kForward = {2, 2, 1}, kBackward = {2 + 4 + 2, 1 + 4, 1};

// An instruction set by the name that SCANKIT_CPU_ISA takes.
struct Level {
  const char* name;
  Rates (*rates)();
};
constexpr Level kLevels[] = {
    {"portable", rates_portable}, {"avx2", rates_avx2}, {"avx512", rates_avx512}};  // as CpuLevel

constexpr int kDim = 768, kLength = 1024;

// The tensors of one scan, filled by a linear congruential generator: the values do not matter, as long as
// they are finite.
struct Problem {
  std::vector<float> sequences[9], projections[4], matrices[2], channels[4], x;
  Forward forward = {};
  Backward backward = {};

  int states;
  explicit Problem(int state_count) : states(state_count) {
    unsigned state = 1;
    const auto fill = [&](std::vector<float>& v, size_t count, float low, float high) {
      v.resize(count);
      for (float& value : v) {
        state = state * 1664525u + 1013904223u;
        value = low + (high - low) * static_cast<float>(state >> 8) / 0x1p24f;
      }
    };
    const size_t elements = size_t{kDim} * kLength, rows = static_cast<size_t>(states);
    for (auto& v : sequences) fill(v, elements, -1, 1);
    for (auto& v : projections) fill(v, rows * kLength, -1, 1);
    for (auto& v : matrices) fill(v, rows * kDim, -1, 0);
    for (auto& v : channels) fill(v, kDim, -1, 1);
    const Index channel = (saved_chunks(kLength) + 1) * states;
    fill(x, static_cast<size_t>(channel * kDim), 0, 0);
    describe(channel);
  }

  void describe(Index channel) {
    const auto in = [&](int i) { return Sequence{sequences[i].data(), 0, kLength}; };
    const auto out = [&](int i) { return SequenceOut{sequences[i].data(), 0, kLength}; };
    Common& c = forward.common;
    c.batch = 1, c.dim = kDim, c.length = kLength, c.states = states, c.groups = 1, c.softplus = true;
    c.u = in(0), c.delta = in(1), c.z = in(2);
    c.A = matrices[0].data(), c.A_dim_stride = states, c.A_state_stride = 1;
    c.B = {projections[0].data(), 0, 0, kLength}, c.C = {projections[1].data(), 0, 0, kLength};
    c.D = channels[0].data(), c.delta_bias = channels[1].data();
    forward.out = out(3), forward.out_z = out(4);
    forward.x = {x.data(), channel * kDim, channel, states};
    backward.common = c;
    backward.dout = in(5), backward.out = in(3), backward.x = forward.x;
    backward.du = out(6), backward.ddelta = out(7), backward.dz = out(8);
    backward.dA = matrices[1].data(), backward.dB = projections[2].data(),
    backward.dC = projections[3].data();
    backward.dD = channels[2].data(), backward.ddelta_bias = channels[3].data();
  }
};

double now() {
  timespec at;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
  return 1e9 * static_cast<double>(at.tv_sec) + static_cast<double>(at.tv_nsec);
}
// Nanoseconds of an element and state.
template <class Function>
double time_of(int states, Function function) {
  const double begin = now();
  if (const char* failure = function()) {
    fprintf(stderr, "%s\n", failure);
    exit(1);
  }
  return (now() - begin) / (double{kDim} * kLength * states);
}

// The upper median for an even count.
double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}
// As if multiplications, multiply-adds and exponentials could not overlap.
double least_time(const Work& work, const Rates& rates) {
  return work.multiplications / rates.multiply + work.fmas / rates.fma + work.exps / rates.exp2;
}

struct Series {
  std::vector<double> multiply, fma, exp2, forward, backward, forward_fraction, backward_fraction;
};

void measure(const Level& level, Problem& problem, Series& to) {
  setenv("SCANKIT_CPU_ISA", level.name, 1);
  const Rates rates = level.rates();
  const double forward = time_of(problem.states, [&] { return cpu_forward(problem.forward); });
  const double backward = time_of(problem.states, [&] { return cpu_backward(problem.backward); });
  to.multiply.push_back(rates.multiply);
  to.fma.push_back(rates.fma);
  to.exp2.push_back(rates.exp2);
  to.forward.push_back(forward);
  to.backward.push_back(backward);
  to.forward_fraction.push_back(least_time(kForward, rates) / forward);
  to.backward_fraction.push_back(least_time(kBackward, rates) / backward);
}

// Prints one row for each instruction set that this CPU has. The levels take turns within a round, so that
// changes of the clock affect all of them.
void measure_all(int states, int rounds) {
  unsetenv("SCANKIT_CPU_ISA");
  const int levels = static_cast<int>(cpu_level()) + 1;
  Problem problem(states);
  std::vector<Series> series(static_cast<size_t>(levels));
  for (int round = 0; round < rounds + 1; ++round) {
    if (round == 1) series.assign(series.size(), {});  // the first one warms up
    for (size_t i = 0; i < series.size(); ++i) measure(kLevels[i], problem, series[i]);
  }
  for (size_t i = 0; i < series.size(); ++i) {
    const Series& s = series[i];
    printf("%3d %-9s %9.1f %9.1f %9.2f | %11.0f %6.0f %% | %11.0f %6.0f %%\n", states, kLevels[i].name,
           median(s.multiply), median(s.fma), median(s.exp2), 1e3 * median(s.forward),
           100 * median(s.forward_fraction), 1e3 * median(s.backward), 100 * median(s.backward_fraction));
  }
}

int run(int rounds) {
  setenv("OMP_NUM_THREADS", "1", 1);
  double load = 0;
  if (getloadavg(&load, 1) != 1) load = -1;
  printf("one thread, float32, B1 D%d L%d, D, z, delta_bias, softplus; median of %d; load %.1f\n", kDim,
         kLength, rounds, load);
  printf("  N %-9s %9s %9s %9s | %11s %8s | %11s %8s\n", "", "mul/ns", "fma/ns", "exp2/ns", "forward ps",
         "of core", "backward ps", "of core");
  for (const int states : {16, 64}) measure_all(states, rounds);
  return 0;
}

}  // namespace
}  // namespace scankit::selective_scan

int main(int count, char** arguments) {
  const int rounds = count > 1 ? atoi(arguments[1]) : 9;
  return scankit::selective_scan::run(rounds > 0 ? rounds : 9);
}

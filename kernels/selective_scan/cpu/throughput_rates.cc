// SPDX-License-Identifier: Apache-2.0
// Compiled once an instruction set, with RATES naming the function: the kernels' own vectors, fma and exp2,
// with nothing else in the loop.
#include <time.h>

#include <utility>

#include "kernels/selective_scan/cpu/simd.h"
#include "kernels/selective_scan/cpu/throughput.h"

namespace scankit::selective_scan {
namespace {

constexpr int kChains = 12;  // independent ones: two pipes of latency 4 or 5 are full
constexpr int kRounds = 200'000;

double seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

// How many lanes of an operation a core completes in a nanosecond. The empty asm statements hide operand
// and result from the compiler, so that it removes and merges nothing. The chains are a pack of variables
// instead of a loop over an array, because an indexed array would be in memory.
template <class Operation, int... kChain>
double rate(Operation operation, std::integer_sequence<int, kChain...>) {
  Vec values[] = {splat(0.75f + 0.01f * kChain)...};
  const double begin = seconds();
  for (int round = 0; round < kRounds; ++round) (operation(values[kChain]), ...);
  return kLanes * (double)(sizeof...(kChain)) * kRounds / (1e9 * (seconds() - begin));
}
using Chains = std::make_integer_sequence<int, kChains>;

}  // namespace

Rates RATES() {
  // 1 and 0, which the compiler does not know: a product of many others would become denormal, which is slow on some.
  Vec factor = splat(1.0f), term = splat(0.0f);
  __asm__ volatile("" : "+v"(factor), "+v"(term));
  return {rate(
              [&](Vec& value) {
                value = value * factor;
                __asm__ volatile("" : "+v"(value));
              },
              Chains{}),
          rate(
              [&](Vec& value) {
                value = fma(value, factor, term);
                __asm__ volatile("" : "+v"(value));
              },
              Chains{}),
          rate(
              [&](Vec& value) {
                __asm__ volatile("" : "+v"(value));
                const Vec result = exp2(value);
                __asm__ volatile("" : : "v"(result));
              },
              Chains{})};
}

}  // namespace scankit::selective_scan

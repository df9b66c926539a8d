// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "validate/report/validation.h"

// Whether results are correct, and what the samples of a timing say.
namespace scankit::validate {

// C64: pairs of F32, real part first.
enum class Dtype { F32, F16, BF16, C64 };

// For tables of cases.
inline constexpr Dtype kF32 = Dtype::F32, kF16 = Dtype::F16, kBF16 = Dtype::BF16;
inline constexpr Dtype kRealDtypes[] = {kF32, kF16, kBF16};

std::string_view dtype_name(Dtype dtype);  // "fp32", "fp16", "bf16", "c64"
// The nearest value that the type holds, ties to even, as torch's conversion gives it; beyond its range an
// infinity. C64: of one of its parts.
double rounded(Dtype dtype, double value);

// Fills `reasons` and `state` of a case that ran, from what was measured.
void judge_case(CaseResult& result, bool deterministic);
// Of the whole run, from its judged cases.
Verdict judge(const Validation& validation);
// The most of its allowance that a tensor used: above 1 it fails. In norm or at its worst element.
double used(const TensorResult& tensor);

// What the samples of a timing say, and how sure it is.

struct Interval {
  double low = 0, middle = 0, high = 0;
};
// The median, and between which samples the true one lies with 95 % (by the binomial distribution, whatever
// the samples' own is). Fewer than six samples do not say: then from the lowest to the highest.
Interval median_of(std::vector<double> samples);

enum class Pace : std::uint8_t { Same, Faster, Slower, Ambiguous, Unknown };
std::string_view pace_word(Pace pace);  // "SAME", ...: the same in every language
struct Comparison {
  Interval ratio;  // other / mine: above 1 mine is faster
  Pace pace = Pace::Unknown;
  std::string why;  // of Unknown
};
// Within 3 % is the same: so much one binary differs from itself. Ambiguous: the
// interval holds more than one answer.
inline constexpr double kSame = 0.03;
Comparison compare(const Timing& timing, const std::string& other);

// How many times as long plain PyTorch takes, which is timed by itself; 0 where it is not.
double times_plain(const Timing& timing);

// Why the samples are not to be trusted: another process on the GPU, a clock held back by heat; "" else.
std::string disturbance(const Timing& timing);
// What differs between the timings of one run that should not: the clock. "" where nothing does.
std::string clock_changes(const std::vector<Timing>& timings);

// What a pass has to do at least, counted from the contract: every input read and every result written once.
struct Work {
  double bytes = 0, flops = 0;
  double operations = 0;    // of the pipe that multiplies and adds: a multiply-add is one
  double exponentials = 0;  // exponentials, logarithms and reciprocals
};
Work work_of(const Timing& timing);

struct Roof {
  double ms = 0;      // that the device would need at its measured limits
  const char* limit;  // which of them: "copy", "fma", "exp"
};
Roof roof_of(const Timing& timing, const Limits& limits);

// What the harness adds to what it times.
struct HarnessCost {
  bool known = false;
  double added = 0;   // to a call, beside one of many in a row: all warm passes together
  double around = 0;  // for each second in calls, cold or warm: caches emptied, events, turns
};
HarnessCost harness_cost(const Validation& v, const std::string& device);

// Reads the JSON of a former run, and fills `compared` and `baseline_problem`. A pass has regressed where now
// / before is above 1.1 with certainty.
void compare_with_baseline(Validation& validation, const std::string& text);

// Before a run: why `text` is no baseline at all; "" where it is the JSON of a run that timed something.
std::string baseline_form_problem(const std::string& text);
// As soon as the devices of `validation` are known: that a device which will be timed is not that of the
// baseline; "" where none is.
std::string baseline_device_problem(const Validation& validation, const std::vector<std::string>& devices,
                                    const std::string& text);

// How a kernel fills the GPU that `v` is of.
struct Fit {
  bool known = false;    // the driver was asked
  double occupancy = 0;  // of the threads that a multiprocessor can hold
  double waves = 0;      // of the launch: blocks over those that all multiprocessors hold at once
};
Fit fit_of(const KernelUse& kernel, const Validation& v);

}  // namespace scankit::validate

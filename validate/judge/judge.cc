// SPDX-License-Identifier: Apache-2.0
#include "validate/judge/judge.h"

#include <algorithm>
#include <cmath>

#include "doctor/base/say.h"

// Rounding to the dtypes of torch, and the verdict over what the harness measured. The measurements
// compare with bounds that come from Tolerance; this file only decides and explains.
namespace scankit::validate {
namespace {

// Rounds to `bits` of significand. `last_place_min` is the exponent of the smallest subnormal, below
// which no bit exists; beyond `largest` the result is an infinity. nearbyint() rounds ties to even in
// the default mode.
double round_to(double value, int bits, int last_place_min, double largest) {
  if (!std::isfinite(value)) return value;
  int exponent = 0;
  std::frexp(value, &exponent);
  const int place = std::max(exponent - bits, last_place_min);
  const double result = std::ldexp(std::nearbyint(std::ldexp(value, -place)), place);
  return std::fabs(result) > largest ? std::copysign(INFINITY, value) : result;
}

}  // namespace

std::string_view dtype_name(Dtype dtype) {
  static constexpr std::string_view kNames[] = {"fp32", "fp16", "bf16", "c64"};
  return kNames[static_cast<int>(dtype)];
}

double rounded(Dtype dtype, double value) {
  const double single =
      static_cast<double>(static_cast<float>(value));  // torch converts double to half this way too
  if (dtype == Dtype::F32 || dtype == Dtype::C64) return single;
  // binary16: 11 bits, smallest subnormal 2^-24. bfloat16: 8 bits, smallest subnormal 2^-133.
  if (dtype == Dtype::F16) return round_to(single, 11, -24, 65504.0);
  return round_to(single, 8, -133, 0x1.fep127);
}

namespace {

std::string figure(double value) { return fmt::format("{:.3g}", value); }

// False for NaN.
bool within(double value, double bound) { return value <= bound; }

// The sentence about a wrong result. The sentences are complete for each combination of parts, because a
// translation cannot be put together from pieces.
std::string describe(const TensorResult& t) {
  std::string index;
  for (const std::int64_t i : t.worst.index) index += (index.empty() ? "" : ",") + std::to_string(i);
  const std::string who = t.data == 2 ? say("{} (second data in the same tensors)", t.name) : t.name;
  const std::string value = figure(t.worst.value), expected = figure(t.worst.expected);
  std::string inputs;
  for (const auto& [name, input] : t.worst.inputs)
    inputs += (inputs.empty() ? "" : ", ") + name + " " + figure(input);
  const bool in_norm = !within(t.error, t.bound);
  const std::string error = figure(t.error), bound = figure(t.bound), margin = figure(t.worst.bound);
  if (inputs.empty())
    return in_norm
               ? say("{}: relative error {}, bound {}; worst element [{}] is {}, expected {} +- {}", who,
                     error, bound, index, value, expected, margin)
               : say("{}: worst element [{}] is {}, expected {} +- {}", who, index, value, expected, margin);
  return in_norm ? say("{}: relative error {}, bound {}; worst element [{}] is {}, expected {} +- {} (inputs "
                       "there: {})",
                       who, error, bound, index, value, expected, margin, inputs)
                 : say("{}: worst element [{}] is {}, expected {} +- {} (inputs there: {})", who, index,
                       value, expected, margin, inputs);
}

// The bound for a difference between two equal calls: that of the result itself.
double bound_of(const CaseResult& result, const std::string& name) {
  const std::string plain = name.substr(0, name.find(' '));  // "out_z of bwd"
  const auto tensor = std::find_if(result.tensors.begin(), result.tensors.end(),
                                   [&](const TensorResult& t) { return t.name == plain; });
  return tensor == result.tensors.end() ? 0 : tensor->bound;
}

}  // namespace

// Both measures count: a norm alone hides one wrong element among many.
double used(const TensorResult& tensor) {
  const double norm = tensor.bound > 0 ? tensor.error / tensor.bound : INFINITY;
  return std::isnan(norm) || std::isnan(tensor.worst.ratio) ? INFINITY : std::max(norm, tensor.worst.ratio);
}

void judge_case(CaseResult& result, bool deterministic) {
  auto& reasons = result.reasons;
  reasons.clear();
  if (!result.error.empty()) reasons.push_back(result.error);
  for (const TensorResult& tensor : result.tensors)
    if (!within(used(tensor), 1)) reasons.push_back(describe(tensor));
  for (const std::string& text : result.modified) reasons.push_back(say("{}, which it must not write", text));
  for (const std::string& text : result.contract) reasons.push_back(text);
  for (const auto& [name, difference] : result.nondeterministic)
    if (deterministic || !within(difference, bound_of(result, name)))
      reasons.push_back(
          say("{} differs between two equal calls, by {} of its norm", name, figure(difference)));
  result.state = reasons.empty() ? CaseState::Passed : CaseState::Failed;
}

// A failure outranks everything that is missing; what is missing outranks what passed.
Verdict judge(const Validation& validation) {
  if (validation.module_problem == ModuleProblem::ImportFailed ||
      validation.module_problem == ModuleProblem::LacksFunctions)
    return Verdict::Failed;
  bool any_passed = false, any_left = false;
  for (const CaseResult& result : validation.cases) {
    if (result.state == CaseState::Passed) {
      any_passed = true;
    } else if (result.state == CaseState::NotRun) {
      any_left = true;
    } else {
      return Verdict::Failed;
    }
  }
  if (std::any_of(validation.compared.begin(), validation.compared.end(),
                  [](const AgainstBaseline& c) { return c.regressed; }))
    return Verdict::Failed;
  const bool all =
      any_passed && !any_left && validation.blocked.empty() && validation.baseline_problem.empty();
  return all ? Verdict::Passed : Verdict::Inconclusive;
}

}  // namespace scankit::validate

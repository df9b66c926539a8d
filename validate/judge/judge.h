// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

#include "validate/report/validation.h"

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

}  // namespace scankit::validate

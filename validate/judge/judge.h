// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "validate/report/validation.h"

namespace scankit::validate {

// Fills `reasons` and `state` of a case that ran, from what was measured.
void judge_case(CaseResult& result, bool deterministic);
// Of the whole run, from its judged cases.
Verdict judge(const Validation& validation);
// The most of its allowance that a tensor used: above 1 it fails. In norm or at its worst element.
double used(const TensorResult& tensor);

}  // namespace scankit::validate

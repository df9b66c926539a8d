// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/binding/checks.h"
#include "kernels/selective_scan/params.h"

namespace scankit {

// The first eight arguments of fwd and bwd, checked against the contract of upstream's module.
struct Inputs {
  Tensor u, delta, A, B, C, D, z, delta_bias;
  selective_scan::Common common;
};

bool read_inputs(const Call& call, PyObject* const* arguments, PyObject* softplus, Inputs* inputs);

// A further tensor (batch, dim, length) of u's dtype and device with unit last stride.
bool check_sequence(const Call& call, const Inputs& inputs, const Tensor& tensor);

selective_scan::Sequence sequence(const Tensor& tensor);
selective_scan::SequenceOut sequence_out(const Tensor& tensor);
selective_scan::SavedStates saved_states(const Tensor& x);

}  // namespace scankit

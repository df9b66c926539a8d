// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/binding/checks.h"
#include "kernels/causal_conv1d/params.h"

namespace scankit {

// What fwd, bwd and update share, checked.
struct ConvInputs {
  Tensor x, weight, bias, sequence, initial;
  causal_conv1d::Common common;
};

// x, weight and bias.
bool read_conv(const Call& call, PyObject* const* x_weight_bias, ConvInputs* inputs);
// seq_idx and initial_states, each perhaps None.
bool read_history(const Call& call, PyObject* sequence, PyObject* initial, ConvInputs* inputs);
bool read_silu(const Call& call, PyObject* silu, ConvInputs* inputs);

// A tensor of x's dtype and device: (batch, dim, length) where `steps` is the length, or the width - 1 states
// before or after.
bool check_signal(const Call& call, const ConvInputs& inputs, const Tensor& t, int steps);
// (batch,) int32 with unit stride, or none.
bool read_numbers(const Call& call, const char* name, PyObject* object, const ConvInputs& inputs,
                  Tensor* tensor);

causal_conv1d::Signal signal(const Tensor& tensor);
causal_conv1d::SignalOut signal_out(const Tensor& tensor);

}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/binding/device_call.h"
#include "kernels/binding/tensor.h"
#include "kernels/causal_conv1d/params.h"

// The functions of the module, and what they share: the checked arguments, and a call on the CPU or a device.
namespace scankit {

// The module's functions, METH_FASTCALL. The number of arguments says which release of causal_conv1d calls.
PyObject* causal_conv1d_fwd(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
PyObject* causal_conv1d_bwd(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
PyObject* causal_conv1d_update(PyObject* module, PyObject* const* arguments, Py_ssize_t count);

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

// A call that runs convolutions, on the CPU or the device of the tensor it began with.
class ConvCall : public DeviceCall {
 public:
  bool run(const Call& call, const causal_conv1d::Forward& conv);
  bool run(const Call& call, const causal_conv1d::Backward& conv);
  bool run(const Call& call, const causal_conv1d::Update& conv);
};

}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/binding/device_call.h"
#include "kernels/binding/tensor.h"
#include "kernels/selective_scan/params.h"

// The functions of the module, and what they share: the checked arguments, and a call on the CPU or a device.
namespace scankit {

// The module's functions, METH_FASTCALL.
PyObject* fwd(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
PyObject* bwd(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
PyObject* fwd_stateful(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
PyObject* bwd_stateful(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
PyObject* fwd_fp64(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
PyObject* bwd_fp64(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
PyObject* state_update(PyObject* module, PyObject* const* arguments, Py_ssize_t count);

// The first eight arguments of fwd and bwd, checked against the contract of upstream's module.
struct Inputs {
  Tensor u, delta, A, B, C, D, z, delta_bias;
  Tensor initial_state, cu_seqlens;  // of the functions that take them
  selective_scan::Common common;
};

bool read_inputs(const Call& call, PyObject* const* arguments, PyObject* softplus, Inputs* inputs);

// The DType of a tensor that may have each of them.
bool read_dtype(const Call& call, const Tensor& tensor, selective_scan::DType* dtype);

// initial_state and cu_seqlens, each of which may be None. After read_inputs.
bool read_sequences(const Call& call, PyObject* initial_state, PyObject* cu_seqlens, Inputs* inputs);
// cu_seqlens alone: sets c->packed.
bool check_packed(const Call& call, const Tensor& cu_seqlens, const Inputs& inputs,
                  selective_scan::Common* c);
// initial_state, or a gradient of its shape: (batch, dim, states), of packed sequences (sequences, ...).
bool read_states(const Call& call, const char* name, PyObject* object, const Inputs& inputs, Tensor* tensor,
                 selective_scan::States* to);
// A new one, contiguous.
bool allocate_given(const Call& call, const char* name, const Inputs& inputs, struct Output* output);

// A further tensor (batch, dim, length) of u's dtype and device with unit last stride.
bool check_sequence(const Call& call, const Inputs& inputs, const Tensor& tensor);

selective_scan::Sequence sequence(const Tensor& tensor);
selective_scan::SequenceOut sequence_out(const Tensor& tensor);
selective_scan::SavedStates saved_states(const Tensor& x);

// A call that runs scans, on the CPU or the device of the tensor it began with.
class ScanCall : public DeviceCall {
 public:
  bool run(const Call& call, const selective_scan::Forward& scan);
  bool run(const Call& call, const selective_scan::Backward& scan);
  bool run(const Call& call, const selective_scan::Update& step);
};

}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/binding/python_api.h"

namespace scankit {

// The module's functions, METH_FASTCALL. The number of arguments says which release of causal_conv1d calls.
PyObject* causal_conv1d_fwd(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
PyObject* causal_conv1d_bwd(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
PyObject* causal_conv1d_update(PyObject* module, PyObject* const* arguments, Py_ssize_t count);

}  // namespace scankit

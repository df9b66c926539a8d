// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/binding/python_api.h"

namespace scankit {

// The module's functions, METH_FASTCALL.
PyObject* fwd(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
PyObject* bwd(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
PyObject* fwd_stateful(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
PyObject* bwd_stateful(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
PyObject* fwd_fp64(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
PyObject* bwd_fp64(PyObject* module, PyObject* const* arguments, Py_ssize_t count);
PyObject* state_update(PyObject* module, PyObject* const* arguments, Py_ssize_t count);

}  // namespace scankit

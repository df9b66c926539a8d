// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/binding/python_api.h"

namespace scankit {

// The module's own file, opened at import and never closed: a file that replaces it later holds other images.
struct ModuleFile {
  const char* path;
  int descriptor;  // -1: not opened
};
const ModuleFile& module_file();
void remember_module_file();

PyObject* scankit_info(PyObject* module, PyObject*);
PyObject* warm(PyObject* module, PyObject* const* arguments, Py_ssize_t count);

}  // namespace scankit

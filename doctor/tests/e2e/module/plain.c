// SPDX-License-Identifier: Apache-2.0
// The smallest module with the right name: for compilers and Pythons that have no torch.
#define Py_LIMITED_API 0x03080000
#include <Python.h>

static struct PyModuleDef module_definition = {PyModuleDef_HEAD_INIT, "selective_scan_cuda", 0, -1, 0, 0, 0, 0, 0};
PyMODINIT_FUNC PyInit_selective_scan_cuda(void) { return PyModule_Create(&module_definition); }

// SPDX-License-Identifier: Apache-2.0
// A small real torch extension named selective_scan_cuda. The end-to-end tests build it in the wrong ways
// that users do. It is written as upstream's is (tensors by at::Tensor, checks by TORCH_CHECK*), on the
// cheapest headers.
#include <Python.h>
#include <c10/util/Exception.h>
#include <torch/csrc/autograd/python_variable.h>

#include "scan.h"

namespace {

const at::Tensor& tensor_argument(PyObject* args, Py_ssize_t index, int64_t dimensions) {
  TORCH_CHECK_INDEX(index < PyTuple_Size(args), "argument ", index, " is missing");
  PyObject* object = PyTuple_GetItem(args, index);
  TORCH_CHECK_TYPE(THPVariable_Check(object), "argument ", index, " must be a tensor");
  const at::Tensor& tensor = THPVariable_Unpack(object);
  TORCH_CHECK_VALUE(tensor.dim() == dimensions, "argument ", index, " must have ", dimensions, " dimensions");
  TORCH_CHECK(tensor.scalar_type() == at::kFloat && tensor.is_cpu(), "this test module is fp32 and CPU only");
  return tensor;
}

PyObject* fwd(PyObject*, PyObject* args) {
  try {
    const at::Tensor& u = tensor_argument(args, 0, 3);
    return THPVariable_Wrap(selective_scan_reference(u, tensor_argument(args, 1, 3),
                                                     tensor_argument(args, 2, 2), tensor_argument(args, 3, 3),
                                                     tensor_argument(args, 4, 3)));
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
}

PyObject* bwd(PyObject*, PyObject*) {
  PyErr_SetString(PyExc_NotImplementedError, "this test module has no backward pass");
  return nullptr;
}

PyMethodDef kMethods[] = {{"fwd", fwd, METH_VARARGS, "forward"},
                          {"bwd", bwd, METH_VARARGS, "backward"},
                          {nullptr, nullptr, 0, nullptr}};
PyModuleDef module_definition = {PyModuleDef_HEAD_INIT, "selective_scan_cuda", nullptr, -1, kMethods};

}  // namespace

PyMODINIT_FUNC PyInit_selective_scan_cuda() { return PyModule_Create(&module_definition); }

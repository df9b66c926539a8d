// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "kernels/binding/torch_objects.h"
#include "kernels/common/driver_plan.h"

namespace scankit {

// What a universal module says about itself. Each one's module.cc defines kModule.
struct ModuleDescription {
  const char* name;
  const device::KernelName* kernels;
  int kernel_count;
};
extern const ModuleDescription kModule;

// How it reads tensors: "universal", or "torch" with the release whose headers it was compiled with.
// python_tensor.cc and binding_torch/libtorch.cc define it.
struct Binding {
  const char *flavor, *torch;  // torch: null where any release does
  bool (*reads_lazy_bits)();   // null where torch's own headers read them (torch_layout.cc)
};
extern const Binding kBinding;

// METH_FASTCALL functions have another signature than PyCFunction.
inline PyCFunction fast(PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)(void)>(function));
}

// scankit_info and warm, which every module offers.
PyMethodDef scankit_info_method();
PyMethodDef warm_method();

// Of kModule, without state and slots: init_module adds the latter.
inline PyModuleDef module_definition(const char* documentation, PyMethodDef* methods) {
  return {PyModuleDef_HEAD_INIT, kModule.name, documentation, 0, methods, nullptr, nullptr, nullptr, nullptr};
}

// What PyInit_NAME returns. `definition` has no slots yet. Multi-phase initialisation, so that an interpreter
// can be refused by itself.
PyObject* init_module(PyModuleDef* definition);

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

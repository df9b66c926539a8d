// SPDX-License-Identifier: Apache-2.0
#include "kernels/binding/module.h"

#include <string.h>

#include "kernels/binding/information.h"
#include "kernels/common/driver_context.h"

// Importing a module: which interpreters and which torch it refuses, and the functions that
// every module offers.
namespace scankit {
namespace {

// torch's objects and the state of the devices are in static memory, so that only one interpreter of
// a process can use the module. The address of sys.modules identifies an interpreter; the ABI of 3.8
// has nothing else.
bool first_interpreter() {
  static const void* first = nullptr;
  // One an interpreter; the ABI of 3.8 has no other name for them.
  const void* mine = PyImport_GetModuleDict();
  if (!first) first = mine;
  return first == mine;
}

// "2.11" of "2.11.0+cu130".
size_t minor_length(const char* version) {
  const char* point = strchr(version, '.');
  return point ? static_cast<size_t>(point - version) + 1 + strspn(point + 1, "0123456789") : strlen(version);
}

// For the torch flavor only: the layout of libtorch's objects may change between minor releases, even if
// every symbol is there. The universal flavor takes any torch.
bool fits_torch() {
  if (!kBinding.torch) return true;
  Ref torch(PyImport_ImportModule("torch"));
  Ref version(torch ? PyObject_GetAttrString(torch.get(), "__version__") : nullptr);
  Ref bytes(version ? PyUnicode_AsUTF8String(version.get()) : nullptr);
  const char* here = bytes ? PyBytes_AsString(bytes.get()) : nullptr;
  if (!here) return false;
  const size_t length = minor_length(kBinding.torch);
  if (length == minor_length(here) && strncmp(here, kBinding.torch, length) == 0) return true;
  PyErr_Format(
      PyExc_ImportError,
      "this %s was built for torch %s, and torch %s is here; build it again: scankit build --flavor torch",
      kModule.name, kBinding.torch, here);
  return false;
}

// Py_mod_exec: runs at each import. The module's file is opened at the first one.
int execute(PyObject* module) {
  if (!first_interpreter()) {
    PyErr_Format(PyExc_ImportError,
                 "%s is loaded in another interpreter of this process; it supports one, as torch does",
                 kModule.name);
    return -1;
  }
  if (!fits_torch()) return -1;
  if (module_file().descriptor == -1) {
    remember_module_file();
    device::device_register(module_file().descriptor, kModule.kernels, kModule.kernel_count);
  }
  return PyModule_AddStringConstant(module, "__version__", SCANKIT_VERSION);
}

PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void*>(execute)}, {0, nullptr}};

}  // namespace

PyMethodDef scankit_info_method() {
  return {"scankit_info", scankit_info, METH_NOARGS,
          "scankit_info()\n--\n\nA dict: version, flavor, path, instruction_set, threads, images, "
          "images_problem."};
}

PyMethodDef warm_method() {
  return {
      "warm", fast(warm), METH_FASTCALL,
      "warm(device=None)\n--\n\nLoads the device images for a CUDA device (default: torch's current one) and "
      "returns what it is. The first call on that device does so otherwise, and waits for an idle device "
      "while "
      "it does."};
}

PyObject* init_module(PyModuleDef* definition) {
  // Objects have another layout in a free-threaded Python, so that nothing of this file may be used, not
  // even its PyModuleDef.
  if (strstr(Py_GetVersion(), "free-threading")) {
    PyErr_Format(PyExc_ImportError,
                 "this %s does not support free-threaded Python; use a Python build with the GIL",
                 kModule.name);
    return nullptr;
  }
  definition->m_slots = slots;
  return PyModuleDef_Init(definition);
}

}  // namespace scankit

// SPDX-License-Identifier: Apache-2.0
// selective_scan_cuda as Python sees it. Multi-phase initialisation, so that an interpreter can be refused by
// itself.
#include <string.h>

#include "kernels/common/driver_context.h"
#include "kernels/selective_scan/binding_universal/functions.h"
#include "kernels/selective_scan/binding_universal/information.h"
#include "kernels/selective_scan/cuda/launch.h"

extern "C" __attribute__((visibility("default"))) PyObject* PyInit_selective_scan_cuda(void);

namespace scankit {
namespace {

// METH_FASTCALL functions have another signature than PyCFunction.
PyCFunction fast(PyObject* (*function)(PyObject*, PyObject* const*, Py_ssize_t)) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)(void)>(function));
}

PyMethodDef methods[] = {
    {"fwd", fast(fwd), METH_FASTCALL,
     "fwd(u, delta, A, B, C, D, z, delta_bias, delta_softplus)\n--\n\n[out, x] or, with z, [out, x, out_z]; "
     "x[:, :, -1, 1::2] is the last state."},
    {"bwd", fast(bwd), METH_FASTCALL,
     "bwd(u, delta, A, B, C, D, z, delta_bias, dout, x, out, dz, delta_softplus, recompute_out_z)\n--\n\n"
     "[du, ddelta, dA, dB, dC, dD, ddelta_bias], with z dz, with recompute_out_z out_z."},
    {"scankit_info", scankit_info, METH_NOARGS,
     "scankit_info()\n--\n\nA dict: version, path, instruction_set, threads, images, images_problem."},
    {"warm", fast(warm), METH_FASTCALL,
     "warm(device=None)\n--\n\nLoads the device images for a CUDA device (default: torch's current one) and "
     "returns what "
     "it is. The first fwd or bwd does so otherwise, and waits for an idle device while it does."},
    {nullptr, nullptr, 0, nullptr}};

// The module keeps torch's objects and the device's state in static memory: one interpreter only.
bool first_interpreter() {
  static const void* first = nullptr;
  // Python 3.8 does not name its interpreters; the modules' dict is one an interpreter.
  const void* mine =
      PyInterpreterState_Get ? static_cast<void*>(PyInterpreterState_Get()) : PyImport_GetModuleDict();
  if (!first) first = mine;
  return first == mine;
}

int execute(PyObject* module) {
  if (!first_interpreter()) {
    PyErr_SetString(PyExc_ImportError,
                    "selective_scan_cuda is loaded in another interpreter of this process; it supports one, "
                    "as torch does");
    return -1;
  }
  if (module_file().descriptor == -1) {
    remember_module_file();
    device::device_register(module_file().descriptor, selective_scan::kCudaKernels,
                            selective_scan::kCudaKernelCount);
  }
  return PyModule_AddStringConstant(module, "__version__", SCANKIT_VERSION);
}

PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void*>(execute)}, {0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "selective_scan_cuda",
                          "Mamba's selective scan on CPU and CUDA tensors, built by scankit.",
                          0,
                          methods,
                          slots,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace
}  // namespace scankit

PyObject* PyInit_selective_scan_cuda(void) {
  // Objects are laid out otherwise there: nothing of this file's may be touched, not even its PyModuleDef.
  if (strstr(Py_GetVersion(), "free-threading")) {
    PyErr_SetString(
        PyExc_ImportError,
        "selective_scan_cuda.abi3.so does not support free-threaded Python; use a build with the GIL");
    return nullptr;
  }
  return PyModuleDef_Init(&scankit::definition);
}

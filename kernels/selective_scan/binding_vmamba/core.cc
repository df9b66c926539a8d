// SPDX-License-Identifier: Apache-2.0
// VMamba's selective_scan_cuda_core as Python sees it.
#include "kernels/binding/module.h"
#include "kernels/selective_scan/binding_vmamba/vmamba.h"
#include "kernels/selective_scan/cuda/launch.h"

extern "C" __attribute__((visibility("default"))) PyObject* PyInit_selective_scan_cuda_core(void);

namespace scankit {

const ModuleDescription kModule = {"selective_scan_cuda_core", selective_scan::kCudaKernels,
                                   selective_scan::kCudaKernelCount};

namespace {

PyObject* core_fwd(PyObject*, PyObject* const* a, Py_ssize_t count) {
  const Torch* torch = torch_objects();
  if (!torch) return nullptr;
  const Call call{"fwd", torch};
  if (count != 9) {
    refuse_as(PyExc_TypeError, call,
              "takes 9 arguments (u, delta, A, B, C, D, delta_bias, delta_softplus, nrows), got %d",
              static_cast<int>(count));
    return nullptr;
  }
  return vmamba_fwd(call, {.u = a[0],
                           .delta = a[1],
                           .A = a[2],
                           .B = a[3],
                           .C = a[4],
                           .D = a[5],
                           .delta_bias = a[6],
                           .softplus = a[7],
                           .nrows = a[8]});
}

PyObject* core_bwd(PyObject*, PyObject* const* a, Py_ssize_t count) {
  const Torch* torch = torch_objects();
  if (!torch) return nullptr;
  const Call call{"bwd", torch};
  if (count != 11) {
    refuse_as(PyExc_TypeError, call,
              "takes 11 arguments (u, delta, A, B, C, D, delta_bias, dout, x, delta_softplus, nrows), got %d",
              static_cast<int>(count));
    return nullptr;
  }
  return vmamba_bwd(call, {.u = a[0],
                           .delta = a[1],
                           .A = a[2],
                           .B = a[3],
                           .C = a[4],
                           .D = a[5],
                           .delta_bias = a[6],
                           .dout = a[7],
                           .x = a[8],
                           .softplus = a[9],
                           .nrows = a[10]});
}

PyMethodDef methods[] = {
    {"fwd", fast(core_fwd), METH_FASTCALL,
     "fwd(u, delta, A, B, C, D, delta_bias, delta_softplus, nrows)\n--\n\n[out, x]; nrows changes nothing."},
    {"bwd", fast(core_bwd), METH_FASTCALL,
     "bwd(u, delta, A, B, C, D, delta_bias, dout, x, delta_softplus, nrows)\n--\n\n"
     "[du, ddelta, dA, dB, dC, dD, ddelta_bias]; nrows changes nothing."},
    scankit_info_method(),
    warm_method(),
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "selective_scan_cuda_core",
                          "VMamba's selective scan on CPU and CUDA tensors, built by scankit.",
                          0,
                          methods,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace
}  // namespace scankit

PyObject* PyInit_selective_scan_cuda_core(void) { return scankit::init_module(&scankit::definition); }

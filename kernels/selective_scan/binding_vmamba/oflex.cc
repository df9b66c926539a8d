// SPDX-License-Identifier: Apache-2.0
// VMamba's selective_scan_cuda_oflex as Python sees it.
#include "kernels/binding/module.h"
#include "kernels/selective_scan/binding_vmamba/vmamba.h"
#include "kernels/selective_scan/cuda/launch.h"

extern "C" __attribute__((visibility("default"))) PyObject* PyInit_selective_scan_cuda_oflex(void);

namespace scankit {

const ModuleDescription kModule = {"selective_scan_cuda_oflex", selective_scan::kCudaKernels,
                                   selective_scan::kCudaKernelCount};

namespace {

PyObject* oflex_fwd(PyObject*, PyObject* const* a, Py_ssize_t count) {
  const Torch* torch = torch_objects();
  if (!torch) return nullptr;
  const Call call{"fwd", torch};
  if (count != 10) {
    refuse_as(
        PyExc_TypeError, call,
        "takes 10 arguments (u, delta, A, B, C, D, delta_bias, delta_softplus, nrows, out_float), got %d",
        static_cast<int>(count));
    return nullptr;
  }
  const int out_float = read_flag(call, "out_float", a[9]);
  if (out_float < 0) return nullptr;
  return vmamba_fwd(call, {.u = a[0],
                           .delta = a[1],
                           .A = a[2],
                           .B = a[3],
                           .C = a[4],
                           .D = a[5],
                           .delta_bias = a[6],
                           .softplus = a[7],
                           .nrows = a[8],
                           .out_float = out_float == 1,
                           .shares_delta = true});
}

PyObject* oflex_bwd(PyObject*, PyObject* const* a, Py_ssize_t count) {
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
                           .nrows = a[10],
                           .shares_delta = true});
}

PyMethodDef methods[] = {{"fwd", fast(oflex_fwd), METH_FASTCALL,
                          "fwd(u, delta, A, B, C, D, delta_bias, delta_softplus, nrows, "
                          "out_float)\n--\n\n[out, x]; delta may have "
                          "fewer channels than u; nrows changes nothing."},
                         {"bwd", fast(oflex_bwd), METH_FASTCALL,
                          "bwd(u, delta, A, B, C, D, delta_bias, dout, x, delta_softplus, nrows)\n--\n\n"
                          "[du, ddelta, dA, dB, dC, dD, ddelta_bias]; nrows changes nothing."},
                         scankit_info_method(),
                         warm_method(),
                         {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "selective_scan_cuda_oflex",
                          "VMamba's selective scan on CPU and CUDA tensors, built by scankit.",
                          0,
                          methods,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

}  // namespace
}  // namespace scankit

PyObject* PyInit_selective_scan_cuda_oflex(void) { return scankit::init_module(&scankit::definition); }

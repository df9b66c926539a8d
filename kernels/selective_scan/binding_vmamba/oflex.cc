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

PyObject* fwd(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return vmamba_fwd(Vmamba::Oflex, arguments, count);
}
PyObject* bwd(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  return vmamba_bwd(Vmamba::Oflex, arguments, count);
}

PyMethodDef methods[] = {{"fwd", fast(fwd), METH_FASTCALL,
                          "fwd(u, delta, A, B, C, D, delta_bias, delta_softplus, nrows, "
                          "out_float)\n--\n\n[out, x]; delta may have "
                          "fewer channels than u; nrows changes nothing."},
                         {"bwd", fast(bwd), METH_FASTCALL,
                          "bwd(u, delta, A, B, C, D, delta_bias, dout, x, delta_softplus, nrows)\n--\n\n"
                          "[du, ddelta, dA, dB, dC, dD, ddelta_bias]; nrows changes nothing."},
                         scankit_info_method(),
                         warm_method(),
                         {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition =
    module_definition("VMamba's selective scan on CPU and CUDA tensors, built by scankit.", methods);

}  // namespace
}  // namespace scankit

PyObject* PyInit_selective_scan_cuda_oflex(void) { return scankit::init_module(&scankit::definition); }

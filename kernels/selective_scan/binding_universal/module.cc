// SPDX-License-Identifier: Apache-2.0
// selective_scan_cuda as Python sees it.
#include "kernels/binding/module.h"

#include "kernels/selective_scan/binding_universal/functions.h"
#include "kernels/selective_scan/cuda/launch.h"

extern "C" __attribute__((visibility("default"))) PyObject* PyInit_selective_scan_cuda(void);

namespace scankit {

const ModuleDescription kModule = {"selective_scan_cuda", selective_scan::kCudaKernels,
                                   selective_scan::kCudaKernelCount};

namespace {

PyMethodDef methods[] = {
    {"fwd", fast(fwd), METH_FASTCALL,
     "fwd(u, delta, A, B, C, D, z, delta_bias, delta_softplus)\n--\n\n[out, x] or, with z, [out, x, out_z]; "
     "x[:, :, -1, 1::2] is the last state."},
    {"bwd", fast(bwd), METH_FASTCALL,
     "bwd(u, delta, A, B, C, D, z, delta_bias, dout, x, out, dz, delta_softplus, recompute_out_z)\n--\n\n"
     "[du, ddelta, dA, dB, dC, dD, ddelta_bias], with z dz, with recompute_out_z out_z."},
    scankit_info_method(),
    warm_method(),
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition =
    module_definition("Mamba's selective scan on CPU and CUDA tensors, built by scankit.", methods);

}  // namespace
}  // namespace scankit

PyObject* PyInit_selective_scan_cuda(void) { return scankit::init_module(&scankit::definition); }

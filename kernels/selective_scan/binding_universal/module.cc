// SPDX-License-Identifier: Apache-2.0
// selective_scan_cuda as Python sees it.
#include "kernels/binding/module.h"

#include "kernels/selective_scan/binding_universal/arguments.h"
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
    {"fwd_stateful", fast(fwd_stateful), METH_FASTCALL,
     "fwd_stateful(u, delta, A, B, C, D, z, delta_bias, delta_softplus, initial_state, cu_seqlens, "
     "save_states)\n--\n\n[out, x, last_state] or, with z, [out, x, last_state, out_z]. initial_state: None "
     "(zero) or (batch, dim, states), of A's dtype. cu_seqlens: None, or int32 (sequences + 1) if u contains "
     "several sequences in one row; states are then (sequences, dim, states). x is None where save_states is "
     "False."},
    {"bwd_stateful", fast(bwd_stateful), METH_FASTCALL,
     "bwd_stateful(u, delta, A, B, C, D, z, delta_bias, dout, x, out, dz, delta_softplus, recompute_out_z, "
     "initial_state, cu_seqlens, dlast_state)\n--\n\nWhat bwd returns, then dinitial_state, None where "
     "initial_state is. dlast_state: the gradient of last_state, None for zero. x may be None: the states "
     "are then computed again."},
    {"state_update", fast(state_update), METH_FASTCALL,
     "state_update(state, x, dt, A, B, C, D, z, dt_bias, dt_softplus)\n--\n\nOne step of decoding: changes "
     "state, (batch, dim, states) of float32 or x's dtype, in place and returns out, (batch, dim)."},
    {"fwd_fp64", fast(fwd_fp64), METH_FASTCALL,
     "fwd_fp64(u, delta, A, B, C, D, z, delta_bias, delta_softplus, initial_state, cu_seqlens)\n--\n\n[out, "
     "last_state] or, with z, [out, last_state, out_z], in float64 (complex128) on the CPU: for gradcheck."},
    {"bwd_fp64", fast(bwd_fp64), METH_FASTCALL,
     "bwd_fp64(u, delta, A, B, C, D, z, delta_bias, dout, delta_softplus, initial_state, cu_seqlens, "
     "dlast_state)\n--\n\n[du, ddelta, dA, dB, dC, dD, ddelta_bias, dz, dinitial_state], None where the "
     "argument is; keeps nothing of fwd_fp64."},
    scankit_info_method(),
    warm_method(),
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition =
    module_definition("Mamba's selective scan on CPU and CUDA tensors, built by scankit.", methods);

}  // namespace
}  // namespace scankit

PyObject* PyInit_selective_scan_cuda(void) { return scankit::init_module(&scankit::definition); }

// SPDX-License-Identifier: Apache-2.0
// causal_conv1d_cuda as Python sees it.
#include "kernels/binding/module.h"

#include "kernels/causal_conv1d/binding_universal/arguments.h"
#include "kernels/causal_conv1d/cuda/launch.h"

extern "C" __attribute__((visibility("default"))) PyObject* PyInit_causal_conv1d_cuda(void);

namespace scankit {

const ModuleDescription kModule = {"causal_conv1d_cuda", causal_conv1d::kCudaKernels,
                                   causal_conv1d::kCudaKernelCount};

namespace {

PyMethodDef methods[] = {
    {"causal_conv1d_fwd", fast(causal_conv1d_fwd), METH_FASTCALL,
     "causal_conv1d_fwd(x, weight, bias, seq_idx, initial_states, out, final_states_out, silu_activation)\n"
     "--\n\nWrites out and final_states_out. Without out, with 7, 5 or 4 arguments as before 1.5.1, returns "
     "it."},
    {"causal_conv1d_bwd", fast(causal_conv1d_bwd), METH_FASTCALL,
     "causal_conv1d_bwd(x, weight, bias, dout, seq_idx, initial_states, dfinal_states, dx, dweight, dbias, "
     "dinitial_states, silu_activation)\n--\n\nWrites dx and dinitial_states, adds to dweight and dbias "
     "(float32). With 10, 7 or 6 arguments as before 1.5.1, returns them."},
    {"causal_conv1d_update", fast(causal_conv1d_update), METH_FASTCALL,
     "causal_conv1d_update(x, conv_state, weight, bias, out, silu_activation, cache_seqlens, "
     "conv_state_indices)\n--\n\nWrites out and takes x into conv_state. Without out, with 7, 6 or 5 "
     "arguments as before 1.5.1, returns it."},
    scankit_info_method(),
    warm_method(),
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition =
    module_definition("causal_conv1d on CPU and CUDA tensors, built by scankit.", methods);

}  // namespace
}  // namespace scankit

PyObject* PyInit_causal_conv1d_cuda(void) { return scankit::init_module(&scankit::definition); }

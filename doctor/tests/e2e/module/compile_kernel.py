# SPDX-License-Identifier: Apache-2.0
# Compiles mamba_ssm's decoding kernel with the installed triton for a GPU that need not be here, up to triton's own
# code: that is where a name that it lacks shows.
import triton
from mamba_ssm.ops.triton.selective_state_update import _selective_scan_update_kernel as kernel
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

while not isinstance(kernel, triton.JITFunction):  # below autotune and heuristics
    kernel = kernel.fn
flags = {"DT_SOFTPLUS": True, "BLOCK_SIZE_M": 16, "BLOCK_SIZE_DSTATE": 16}
constants = {n: flags.get(n, False) for n in kernel.arg_names if n.isupper()}
signature = {n: "constexpr" if n in constants else "*fp32" if n.endswith("_ptr") else "i32" for n in kernel.arg_names}
triton.compile(ASTSource(kernel, signature, constants), target=GPUTarget("cuda", 80, 32))

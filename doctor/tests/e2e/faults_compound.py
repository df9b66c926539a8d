# SPDX-License-Identifier: Apache-2.0
"""Two and three faults in one environment: the loader stops at the first, the doctor names those behind it too (`found`),
with the one to act on first as `root`."""
import shutil

from environment import MODULE, module_text, stub_library
from fault import Fault, fault


# A wheel of another CUDA major, on a system that is older than the one it was built on.
@fault(matrix=True)
def compound_cudart_and_glibc(env):
    stubs = env.beside("stub")
    cudart = stub_library(stubs, "libcudart.so.12", "cudaGetLastError", "libcudart.so.12")
    libc = stub_library(stubs, "libc.so.6", "__isoc23_strtol", "GLIBC_2.99")
    env.link_module(env.module_file, *env.objects("binding", "scan", "runtime", "newer_glibc"), cudart, libc)
    shutil.rmtree(stubs)
    return Fault(root="glibc_too_old", error="libcudart.so.12: cannot open shared object file|GLIBC_2.99. not found",
                 log="glibc_too_old|missing_cudart", found=("glibc_too_old", "missing_cudart"))


# The old wheel as it is found in the wild: another CUDA, the other string ABI and a source file that was left out.
@fault(matrix=True)
def compound_three_in_one_file(env):
    cudart = stub_library(env.beside("stub"), "libcudart.so.11.0", "cudaGetLastError", "libcudart.so.11.0")
    env.link_module(env.module_file, *env.objects("binding-oldabi", "runtime"), cudart)
    shutil.rmtree(env.beside("stub"))
    return Fault(root="abi_cxx11_mismatch|missing_cudart", error="libcudart.so.11.0: cannot open shared object file",
                 log="missing_cudart", found=("missing_cudart", "abi_cxx11_mismatch", "own_symbol_undefined"))


# A stale copy comes first; the good one behind it would load.
@fault()
def compound_shadow_over_cudart(env):
    env.link_good()
    cudart = stub_library(env.beside("stub"), "libcudart.so.12", "cudaGetLastError", "libcudart.so.12")
    env.link_module(env.beside("checkout") / env.module_file.name, *env.objects("binding-other", "scan-other", "runtime"), cudart)
    shutil.rmtree(env.beside("stub"))
    return Fault(root="several_copies", error="libcudart.so.12: cannot open shared object file", log="missing_cudart",
                 found=("several_copies", "torch_version_mismatch", "missing_cudart"),
                 variables={"PYTHONPATH": str(env.beside("checkout"))})


# torch itself does not start, and the module would not fit it either.
@fault(matrix=True, files_printed="plain")
def compound_torch_and_module(env):
    env.make_again("plain")
    env.link_stale()
    shutil.rmtree(env.site / "nvidia/cusparselt")
    return Fault(root="torch_incomplete", error="libcusparseLt.so.0: cannot open shared object file",
                 found=("torch_incomplete", "torch_version_mismatch"))


# Two modules of one environment, each broken in its own way.
@fault(matrix=True)
def compound_two_modules(env):
    env.cut_module(3000)
    cudart = stub_library(env.beside("stub"), "libcudart.so.11.0", "cudaGetLastError", "libcudart.so.11.0")
    env.plain_module(env.site / f"causal_conv1d_cuda{env.suffix}", None, *env.objects("runtime"), cudart,
                     text=module_text(old=MODULE, new="causal_conv1d_cuda"))
    shutil.rmtree(env.beside("stub"))
    return Fault(root="corrupt_binary|missing_cudart", found=("corrupt_binary", "missing_cudart"))

# SPDX-License-Identifier: Apache-2.0
"""Shared libraries that a module needs and that are not here, are too old, or are hidden by others of the same name."""
import shutil

from environment import shared_library, stub_library
from fault import Fault, fault
from fixtures import CACHE, SkipTest, run, shared_python, shell


def missing_cudart(env, soname, *, binding="binding"):
    stub = stub_library(env.beside("stub"), soname, "cudaGetLastError", soname)
    env.link_module(env.module_file, *env.objects(binding, "scan", "runtime"), stub)
    shutil.rmtree(env.beside("stub"))


@fault()
def missing_cudart_12(env):
    missing_cudart(env, "libcudart.so.12")
    return Fault(root="missing_cudart", error=r"libcudart\.so\.12: cannot open shared object file")


@fault(matrix=True)
def missing_cudart_11(env):
    missing_cudart(env, "libcudart.so.11.0")
    return Fault(root="missing_cudart", error=r"libcudart\.so\.11\.0: cannot open shared object file")


# An old wheel: the loader names the runtime alone, and hides the pre-CXX11 ABI behind it.
@fault(matrix=True)
def missing_cudart_over_old_abi(env):
    missing_cudart(env, "libcudart.so.12", binding="binding-oldabi")
    return Fault(root="missing_cudart|abi_cxx11_mismatch", error="libcudart.so.12: cannot open shared object file", log="missing_cudart",
                 found=("missing_cudart", "abi_cxx11_mismatch"))


# Other CUDA libraries than the runtime carry a major in their names too.
@fault(matrix=True)
def missing_cublas(env):
    env.needs_library("libcublas.so.11", "cublasCreate_v2", "libcublas.so.11")
    return Fault(root="missing_cudart", error="libcublas.so.11: cannot open shared object file")


@fault()
def missing_cudnn(env):
    env.needs_library("libcudnn.so.8", "cudnnCreate", "libcudnn.so.8")
    return Fault(root="missing_cudart", error="libcudnn.so.8: cannot open shared object file")


@fault(matrix=True)
def missing_nccl_of_another_major(env):
    env.needs_library("libnccl.so.1", "ncclCommAbort")
    return Fault(root="missing_cudart", error="libnccl.so.1: cannot open shared object file")


@fault()
def no_driver_libcuda(env):
    if "libcuda.so.1 " in run("sh", "-c", "ldconfig -p 2>/dev/null || /sbin/ldconfig -p 2>/dev/null", status=None):
        raise SkipTest("a driver is installed here: nothing to plant")
    env.needs_library("libcuda.so.1", "cuInit")
    return Fault(root="no_driver_libcuda", error="libcuda.so.1: cannot open shared object file")


@fault()
def system_library_missing(env):
    env.needs_library("libGL.so.7", "glClear")  # of a number that no system has
    return Fault(root="system_library_missing", error="libGL.so.7: cannot open shared object file")


@fault()
def executable_stack(env):
    release = run("ldd", "--version").splitlines()[0].rpartition(" ")[2]
    if tuple(map(int, release.split("."))) < (2, 41):
        raise SkipTest(f"glibc {release} still grants such a stack, 2.41 is the first that does not")
    env.link_module(env.module_file, *env.objects("binding", "scan"), "-Wl,-z,execstack")
    return Fault(root="executable_stack", error="cannot enable executable stack as shared object requires")


# The C library of the build machine was newer. A stub libc.so.6 with that version stands in for it at link time: what
# the file then says to the loader (a need of libc.so.6 version GLIBC_2.N) is the same as after a build over there.
@fault()
def glibc_too_old(env):
    here = int(run("ldd", "--version").splitlines()[0].rpartition(".")[2])
    minor = max(here + 2, 38)
    stub = env.folder_beside("stub")
    (stub / "c.map").write_text(f"GLIBC_2.{minor} {{ global: *; }};\n")
    shared_library(stub / "libc_newer.so",
                   "long __isoc23_strtol(const char* a, char** b, int c) { (void)a; (void)b; (void)c; return 0; }\n", "libc.so.6",
                   "-nostdlib", f"-Wl,--version-script,{stub / 'c.map'}")
    env.link_module(env.module_file, *env.objects("binding", "scan", "newer_glibc"), stub / "libc_newer.so")
    shutil.rmtree(stub)
    return Fault(root="glibc_too_old", error=f"version .GLIBC_2.{minor}' not found")


# The compiler of the build machine was newer: the file is bound to versions that this libstdc++ does not have.
@fault()
def libstdcxx_too_old(env):
    env.needs_library("libstdc++.so.6", "_ZSt21__glibcxx_newer_thingv", "GLIBCXX_3.4.99")
    return Fault(root="libstdcxx_too_old", error="version .GLIBCXX_3.4.99' not found")


@fault(matrix=True)
def libstdcxx_too_old_cxxabi(env):
    env.needs_library("libstdc++.so.6", "__cxa_newer_thing", "CXXABI_1.3.99")
    return Fault(root="libstdcxx_too_old", error="version .CXXABI_1.3.99' not found")


# g++ brings libgomp too, and torch has loaded its own, older copy of it.
@fault(matrix=True)
def libgomp_of_torch_is_older(env):
    env.needs_library("libgomp.so.1", "GOMP_newer_thing", "GOMP_9.9")
    return Fault(root="libstdcxx_too_old", error="version .GOMP_9.9' not found")


# Libraries that the loader takes although they lack what is wanted of them -------------------------------------------------

def other_release(folder, soname, *names):
    """A library of that soname whose version of the same name holds `names` alone."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "other.map").write_text(f"{soname} {{ global: *; }};\n")
    shared_library(folder / soname, "".join(f"int {name}(void) {{ return 0; }}\n" for name in names), soname,
                   f"-Wl,--version-script,{folder / 'other.map'}")


NVJITLINK_ELSEWHERE = "this torch finds its wheel's nvJitLink before the variable is asked"


# The most reported one: a toolkit's folder in the variable. cuSPARSE has a RUNPATH, or is found by the cache: the variable
# comes before both.
@fault(files_printed="plain")
def ld_library_path_shadow_nvjitlink(env):
    other_release(env.beside("older"), "libnvJitLink.so.13", "__nvJitLinkCreate_12_9", "__nvJitLinkAddData_12_9")
    return Fault(root="ld_library_path_shadow", error="undefined symbol: __nvJitLink[A-Za-z]*_13_[0-9]+, version libnvJitLink.so.13",
                 statement="import torch", variables={"LD_LIBRARY_PATH": str(env.beside("older"))}, may_work=NVJITLINK_ELSEWHERE)


# The folder stands behind a harmless one, and the good module behind torch fails with it.
@fault(files_printed="plain", printed="matrix")
def ld_library_path_shadow_behind_another(env):
    env.link_good()
    other_release(env.beside("older"), "libnvJitLink.so.13", "__nvJitLinkCreate_12_9")
    harmless = env.folder_beside("harmless")
    return Fault(root="ld_library_path_shadow", error="undefined symbol: __nvJitLink",
                 variables={"LD_LIBRARY_PATH": f"{harmless}:{env.beside('older')}/"}, may_work=NVJITLINK_ELSEWHERE)


# No RPATH of torch's leads to libstdc++, so the variable decides about it.
@fault(files_printed="plain")
def ld_library_path_shadow_libstdcxx(env):
    older = env.folder_beside("older")
    (older / "other.map").write_text("GLIBCXX_3.4 { global: *; };\nCXXABI_1.3 { };\n")
    shared_library(older / "libstdc++.so.6", "int nothing_of_it(void) { return 0; }\n", "libstdc++.so.6",
                   f"-Wl,--version-script,{older / 'other.map'}")
    return Fault(root="ld_library_path_shadow", error=r"libstdc\+\+.so.6: version .* not found", log="libstdcxx_too_old",
                 statement="import torch", variables={"LD_LIBRARY_PATH": str(older)})


# An older NCCL wheel in torch's own site folder, where torch's DT_RPATH finds it before all else.
@fault(files="plain")
def cuda_wheels_mismatch_nccl(env):
    shell("fx_download", CACHE / "wheels", "nvidia-nccl-cu13==2.27.7")
    run(shared_python(), "-m", "pip", "--disable-pip-version-check", "-q", "--python", env.python, "install", "--no-deps", "--no-index",
        "--find-links", CACHE / "wheels", "nvidia-nccl-cu13==2.27.7")
    return Fault(root="cuda_wheels_mismatch", error="undefined symbol: nccl", statement="import torch")

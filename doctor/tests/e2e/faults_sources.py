# SPDX-License-Identifier: Apache-2.0
"""Folders of sources whose build cannot work here. The statement is the real build, by torch.utils.cpp_extension with the
real nvcc and g++, stopped by the real error. Each stops in seconds: before the first file is compiled, or at its first
#include."""
import glob
import os
import shutil

from fault import Fault, fault
from fixtures import CACHE, SkipTest, need_nvcc, run, shared_python, site_of

FOR_SM_90 = '{"nvcc": ["-gencode=arch=compute_90,code=sm_90"]}'


def build_with(*words):
    return f'import runpy, sys; sys.argv = {["setup.py", *words]!r}; runpy.run_path("setup.py", run_name="__main__")'


BUILD = build_with("build_ext", "--inplace")


def scan_sources(env, kind, flags, *, line="", first="#include <Python.h>"):
    """The folder `sources` with a setup.py (`kind`: CUDAExtension or CppExtension; `flags`: Python of extra_compile_args;
    `line`: one more line of it), one .cpp that begins with `first`, and for CUDA one .cu."""
    folder = env.work / "sources"
    (folder / "csrc").mkdir(parents=True, exist_ok=True)
    kernels = ', "csrc/scan_fwd.cu"' if kind == "CUDAExtension" else ""
    (folder / "setup.py").write_text(f"""\
from setuptools import setup
import torch
from torch.utils.cpp_extension import BuildExtension, CppExtension, CUDAExtension
{line}
setup(
    name="scan",
    ext_modules=[
        {kind}(
            name="scan_cuda",
            sources=["csrc/scan.cpp"{kernels}],
            extra_compile_args={flags},
        )
    ],
    cmdclass={{"build_ext": BuildExtension}},
)
""")
    (folder / "csrc/scan.cpp").write_text(f"{first}\nint scan() {{ return 0; }}\n")
    (folder / "csrc/scan_fwd.cu").write_text("__global__ void scan_fwd() {}\n")
    return folder


def broken_build(folder, root, error, *, statement=BUILD, **more):
    return Fault(root=root, error=error, statement=statement, starts_in=folder, **more)


def need_no_gpu():
    if glob.glob("/dev/nvidia[0-9]*"):
        raise SkipTest("a GPU.")


def program(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


# The real archive of the index has no csrc; its setup.py would ask the network for a wheel first.
@fault()
def sources_archive_without_csrc(env):
    need_nvcc()
    archive = CACHE / "sdists/mamba_ssm-1.2.0.post1.tar.gz"
    if not archive.exists():
        run(shared_python(), "-m", "pip", "--disable-pip-version-check", "-q", "download", "--no-deps", "--no-binary", ":all:",
            "--no-build-isolation", "-d", archive.parent, "mamba-ssm==1.2.0.post1")
    run("tar", "--no-same-owner", "-xf", archive, "-C", env.work)
    return broken_build(env.work / "mamba_ssm-1.2.0.post1", "sdist_missing_csrc",
                        "csrc/selective_scan/selective_scan.cpp', needed by .* missing|No such file or directory: .*selective_scan",
                        statement=build_with("build_ext"), found=("sdist_missing_csrc", "nvcc_unknown_arch"))


@fault(matrix=True)
def sources_home_without_nvcc(env):
    empty = env.work / "no-toolkit"
    empty.mkdir()
    return broken_build(scan_sources(env, "CUDAExtension", FOR_SM_90), "nvcc_missing",
                        "nvcc not found at|No such file or directory: .*nvcc", variables={"CUDA_HOME": str(empty)})


# A toolkit folder whose nvcc says that release, as torch and the doctor ask it.
@fault()
def sources_nvcc_of_another_major(env):
    toolkit = env.work / "toolkit"
    (toolkit / "include").mkdir(parents=True)
    program(toolkit / "bin/nvcc", '#!/bin/sh\necho "Cuda compilation tools, release 12.4, V12.4.1"\n')
    return broken_build(scan_sources(env, "CUDAExtension", FOR_SM_90), "cuda_version_mismatch_build",
                        r"detected CUDA version \(12.4\) mismatches|12\.4.*13\.0", variables={"CUDA_HOME": str(toolkit)})


# As conda's cuda-nvcc alone: the compiler and the runtime's headers, without those of CCCL.
@fault()
def sources_no_library_headers(env):
    real, toolkit = need_nvcc(), env.work / "toolkit"
    (toolkit / "bin").mkdir(parents=True)
    shutil.copy2(real / "bin/nvcc", toolkit / "bin/nvcc")
    run("sh", "-c", 'cp -rsL "$(readlink -f "$1/include")" "$2" 2>/dev/null || cp -r "$1/include/" "$2"', "-", real, toolkit / "include")
    for name in ("thrust", "cccl"):
        shutil.rmtree(toolkit / "include" / name, ignore_errors=True)
    if os.path.exists("/usr/local/include/thrust") or os.path.exists("/usr/include/thrust"):
        raise SkipTest("this system has CCCL's headers elsewhere too")
    folder = scan_sources(env, "CUDAExtension", FOR_SM_90)
    kernel = folder / "csrc/scan_fwd.cu"  # of CUDA 13's folders for it only nvcc knows
    kernel.write_text("#include <thrust/version.h>\n" + kernel.read_text())
    return broken_build(folder, "cuda_headers_missing", "thrust/version.h: No such file", variables={"CUDA_HOME": str(toolkit)})


# A distribution's Python without its development package: the interpreter and its library, no include folder.
@fault(matrix=True)
def sources_no_python_headers(env):
    real = run(env.python, "-c", "import os, sys; print(os.path.realpath(sys.executable))").strip()
    library = run(real, "-c", "import os; print(os.path.dirname(os.__file__))").strip()
    prefix = run(real, "-c", "import sys; print(sys.base_prefix)").strip()
    paths = {file.name: file.read_text() for file in env.site.glob("*.pth")}
    copy = env.work / "python"
    here = copy / "lib/python3.11"
    (copy / "bin").mkdir(parents=True)
    shutil.copy2(real, copy / "bin/python3.11")
    here.mkdir(parents=True)
    for entry in os.listdir(library):
        (here / entry).symlink_to(os.path.join(library, entry))
    for data in here.glob("_sysconfigdata_*.py"):  # as whoever moves a Python does
        text = data.read_text().replace(prefix, str(copy))
        data.unlink()
        data.write_text(text)
    (here / "__pycache__").unlink(missing_ok=True)
    if "(3, 11)" not in run(copy / "bin/python3.11", "-c", "import sys; print(sys.version_info[:2])", status=None):
        raise SkipTest("the Python here is not 3.11, or does not run from another folder")
    shutil.rmtree(env.folder)
    run(copy / "bin/python3.11", "-m", "venv", "--without-pip", env.folder)
    for name, text in paths.items():
        (env.site / name).write_text(text)
    return broken_build(scan_sources(env, "CppExtension", "[]"), "python_headers_missing", "Python.h: No such file")


@fault(matrix=True, printed="matrix")
def sources_cxx_standard(env):
    folder = scan_sources(env, "CppExtension", '["-std=c++14", "-Wfatal-errors"]', first="#include <ATen/ATen.h>")
    return broken_build(folder, "cxx_standard_too_low", r"C\+\+17 or later compatible compiler is required|C\+\+20 or later")


@fault(printed="ci")
def sources_arch_list(env):
    need_nvcc()
    return broken_build(scan_sources(env, "CUDAExtension", '{"cxx": []}'), "nvcc_unknown_arch",
                        "Unsupported gpu architecture 'compute_70'", variables={"TORCH_CUDA_ARCH_LIST": "7.0"})


@fault(matrix=True)
def sources_arch_list_unknown_to_torch(env):
    need_nvcc()
    return broken_build(scan_sources(env, "CUDAExtension", '{"cxx": []}'), "nvcc_unknown_arch", r"Unknown CUDA arch \(9.9\)",
                        variables={"TORCH_CUDA_ARCH_LIST": "9.9"})


FOR_SM_35 = '{"nvcc": ["-gencode", "arch=compute_35,code=sm_35"]}'


@fault(matrix=True)
def sources_arch_in_setup_py(env):
    need_nvcc()
    return broken_build(scan_sources(env, "CUDAExtension", FOR_SM_35), "nvcc_unknown_arch", "Unsupported gpu architecture 'compute_35'")


# A folder that the user names, from somewhere else.
@fault(matrix=True)
def sources_named(env):
    need_nvcc()
    folder = scan_sources(env, "CUDAExtension", FOR_SM_35)
    return broken_build(env.work, "nvcc_unknown_arch", "Unsupported gpu architecture 'compute_35'", options=["--sources", str(folder)],
                        statement=f"import os; os.chdir('sources'); {BUILD}")


@fault(matrix=True)
def sources_torch_asks_for_a_gpu(env):
    need_nvcc()
    need_no_gpu()
    return broken_build(scan_sources(env, "CUDAExtension", '{"cxx": []}'), "no_gpu_at_build", "IndexError: list index out of range")


@fault(matrix=True)
def sources_ask_for_a_gpu(env):
    need_nvcc()
    need_no_gpu()
    folder = scan_sources(env, "CUDAExtension", '{"nvcc": [f"-arch=sm_{major}{minor}"]}',
                          line="major, minor = torch.cuda.get_device_capability()")
    return broken_build(folder, "no_gpu_at_build", "Found no NVIDIA driver|No CUDA GPUs are available")


# The build tools are there, torch is not.
@fault()
def sources_without_torch(env):
    for file in env.site.glob("*.pth"):
        file.unlink()
    for entry in site_of(shared_python()).iterdir():
        if not entry.name.startswith("torch") and not (env.site / entry.name).exists():
            (env.site / entry.name).symlink_to(entry)
    return broken_build(scan_sources(env, "CppExtension", "[]"), "torch_missing_at_build", "No module named 'torch'")


@fault(matrix=True)
def sources_of_an_old_torch(env):
    folder = scan_sources(env, "CppExtension", "[]", first="#include <THC/THC.h>")
    return broken_build(folder, "torch_api_removed_in_source", "THC/THC.h: No such file")


# torch asks the compiler for its version and refuses it before it compiles.
@fault()
def sources_compiler_too_new(env):
    need_nvcc()
    compiler = env.work / "bin/g++-99"
    program(compiler, '#!/bin/sh\nfor a; do [ "$a" = -dumpversion ] && echo 99.1.0 && exit; done\nexec /usr/bin/g++ "$@"\n')
    return broken_build(scan_sources(env, "CUDAExtension", FOR_SM_90), "host_compiler_unsupported",
                        "greater than the maximum required version by CUDA", variables={"CXX": str(compiler)})

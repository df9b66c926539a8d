# SPDX-License-Identifier: Apache-2.0
"""Folders of sources that are no torch extension, or a good one, whose build really works."""
import shutil

from environment import MODULE
from faults_sources import build_with
from healthy import Healthy, healthy


@healthy(files="plain", labels="matrix;e2e")
def plain_python_project(env):
    (env.work / "setup.py").write_text('from setuptools import setup\nsetup(name="plain", py_modules=["plain"])\n')
    (env.work / "plain.py").write_text("x = 1\n")
    return Healthy("import plain")


@healthy(files="bare")
def cpp_project(env):
    (env.work / "CMakeLists.txt").write_text(
        "project(tool LANGUAGES CXX)\nset(CMAKE_CXX_STANDARD 11)\nadd_executable(tool missing.cpp)\n")
    return Healthy("import json", verdict="empty")


@healthy(files="plain")
def checkout_of_mamba(env):
    (env.work / "mamba_ssm/ops").mkdir(parents=True)
    for name in ("mamba_ssm/ops/selective_scan_interface.py", "test_scan.py"):
        (env.work / name).write_text(f"import {MODULE}\n")
    return Healthy("import torch")


@healthy()
def good_extension_sources(env):
    csrc = env.work / "csrc"
    csrc.mkdir()
    cuda = shutil.which("nvcc") is not None
    (env.work / "setup.py").write_text(f"""\
import sys
from setuptools import setup
import torch
from torch.utils.cpp_extension import BuildExtension, CppExtension, CUDAExtension
kind = {'CUDAExtension' if cuda else 'CppExtension'}
flags = ["-O2"] + (["/std:c++14"] if sys.platform == "win32" else ["-std=c++17"])
if sys.platform == "win32":
    flags.append("-std=c++14")
setup(name="scan", cmdclass={{"build_ext": BuildExtension}}, ext_modules=[kind("scan_cuda",
      ["csrc/scan.cpp"{', "csrc/scan_fwd.cu"' if cuda else ''}],
      extra_compile_args={{"cxx": flags, "nvcc": ["-gencode", "arch=compute_90,code=sm_90"]}})])
""")
    (env.work / "pyproject.toml").write_text('[tool.uv]\nno-build-isolation-package = ["scan"]\n')
    (csrc / "scan.cpp").write_text('#include "scan.h"\n#include <Python.h>\nint scan() { return 0; }\n')
    (csrc / "scan.h").write_text("#pragma once\n#ifdef OLD_TORCH\n#include <THC/THC.h>\n#endif\n")
    (csrc / "scan_fwd.cu").write_text(
        "#include <cuda_fp16.h>\n__global__ void scan_fwd(__half* x) { *x = __float2half(1.0f); }\n")
    return Healthy(build_with("build_ext"))

# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154  # run_fault.sh reads what the functions set, and sets $work
# SPDX-License-Identifier: Apache-2.0
# Folders of sources whose build cannot work here. IMPORT is the real build, by torch.utils.cpp_extension with the real
# nvcc and g++, stopped by the real error; STARTS_IN is the folder. Each stops in seconds: before the first file is
# compiled, or at its first #include.

real_nvcc() { # the toolkit, or none: then there is nothing to break
  command -v nvcc >/dev/null || exit 77
  dirname "$(dirname "$(readlink -f /usr/local/cuda/bin/nvcc || command -v nvcc)")"
}

no_gpu_here() { ! compgen -G '/dev/nvidia[0-9]*' >/dev/null || exit 77; }

# scan_sources ENV KIND FLAGS [LINE]: a folder with setup.py (KIND: CUDAExtension or CppExtension; FLAGS: Python of
# extra_compile_args; LINE: one more line of it), one .cpp and for CUDA one .cu; the build is what IMPORT runs.
scan_sources() {
  local folder=$work/sources kernels=''
  [ "$2" = CUDAExtension ] && kernels=', "csrc/scan_fwd.cu"'
  mkdir -p "$folder/csrc"
  cat >"$folder/setup.py" <<PY
from setuptools import setup
import torch
from torch.utils.cpp_extension import BuildExtension, CppExtension, CUDAExtension
${4:-}
setup(
    name="scan",
    ext_modules=[
        $2(
            name="scan_cuda",
            sources=["csrc/scan.cpp"$kernels],
            extra_compile_args=$3,
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
PY
  : "${FIRST:=#include <Python.h>}"
  printf '%s\nint scan() { return 0; }\n' "$FIRST" >"$folder/csrc/scan.cpp"
  printf '__global__ void scan_fwd() {}\n' >"$folder/csrc/scan_fwd.cu"
  STARTS_IN=$folder
  IMPORT='import runpy, sys; sys.argv = ["setup.py", "build_ext", "--inplace"]; runpy.run_path("setup.py", run_name="__main__")'
}

# nvcc_of VERSION: a toolkit folder whose nvcc says that release, as torch and the doctor ask it.
nvcc_of() {
  mkdir -p "$work/toolkit/bin" "$work/toolkit/include"
  printf '#!/bin/sh\necho "Cuda compilation tools, release %s, V%s.1"\n' "$1" "$1" >"$work/toolkit/bin/nvcc"
  chmod +x "$work/toolkit/bin/nvcc"
}

# The real archive of the index has no csrc; its setup.py would ask the network for a wheel first.
fault_sources_archive_without_csrc() {
  local archives=$SCANKIT_CACHE/sdists python
  python=$("$1/bin/python" -c 'import sys; print(sys.executable)')
  real_nvcc >/dev/null
  mkdir -p "$archives"
  [ -e "$archives/mamba_ssm-1.2.0.post1.tar.gz" ] ||
    "$(fx_torch_env)/bin/python" -m pip --disable-pip-version-check -q download --no-deps --no-binary :all: \
      --no-build-isolation -d "$archives" mamba-ssm==1.2.0.post1
  tar --no-same-owner -xf "$archives/mamba_ssm-1.2.0.post1.tar.gz" -C "$work"
  STARTS_IN=$work/mamba_ssm-1.2.0.post1
  IMPORT='import runpy, sys; sys.argv = ["setup.py", "build_ext"]; runpy.run_path("setup.py", run_name="__main__")'
  ERROR="csrc/selective_scan/selective_scan.cpp', needed by .* missing|No such file or directory: .*selective_scan"
  ROOT=sdist_missing_csrc FOUND='sdist_missing_csrc nvcc_unknown_arch'
}

fault_sources_home_without_nvcc() {
  mkdir -p "$work/no-toolkit"
  scan_sources "$1" CUDAExtension '{"nvcc": ["-gencode=arch=compute_90,code=sm_90"]}'
  PREPARE="CUDA_HOME=$work/no-toolkit"
  ERROR='nvcc not found at|No such file or directory: .*nvcc' ROOT=nvcc_missing
}

fault_sources_nvcc_of_another_major() {
  nvcc_of 12.4
  scan_sources "$1" CUDAExtension '{"nvcc": ["-gencode=arch=compute_90,code=sm_90"]}'
  PREPARE="CUDA_HOME=$work/toolkit"
  ERROR='detected CUDA version \(12.4\) mismatches|12\.4.*13\.0' ROOT=cuda_version_mismatch_build
}

# As conda's cuda-nvcc alone: the compiler and the runtime's headers, without those of CCCL.
fault_sources_no_library_headers() {
  local real
  real=$(real_nvcc)
  mkdir -p "$work/toolkit/bin"
  cp "$real/bin/nvcc" "$work/toolkit/bin/"
  cp -rsL "$(readlink -f "$real/include")" "$work/toolkit/include" 2>/dev/null || cp -r "$real/include/" "$work/toolkit/include"
  rm -rf "$work/toolkit/include/thrust" "$work/toolkit/include/cccl"
  [ ! -e /usr/local/include/thrust ] && [ ! -e /usr/include/thrust ] || exit 77
  scan_sources "$1" CUDAExtension '{"nvcc": ["-gencode=arch=compute_90,code=sm_90"]}'
  sed -i '1i #include <thrust/version.h>' "$work/sources/csrc/scan_fwd.cu" # of CUDA 13's folders for it only nvcc knows
  PREPARE="CUDA_HOME=$work/toolkit"
  ERROR='thrust/version.h: No such file' ROOT=cuda_headers_missing
}

# A distribution's Python without its development package: the interpreter and its library, no include folder.
fault_sources_no_python_headers() {
  local real site
  real=$("$1/bin/python" -c 'import os, sys; print(os.path.realpath(sys.executable))')
  site=$(fx_site "$1/bin/python")
  mkdir -p "$work/python/bin"
  cp "$real" "$work/python/bin/python3.11"
  mkdir -p "$work/python/lib/python3.11"
  ln -s "$("$real" -c 'import os; print(os.path.dirname(os.__file__))')"/* "$work/python/lib/python3.11/"
  for data in "$work"/python/lib/python3.11/_sysconfigdata_*.py; do # as whoever moves a Python does
    sed -i "s|$("$real" -c 'import sys; print(sys.base_prefix)')|$work/python|g" "$data"
  done
  rm -rf "$work/python/lib/python3.11/__pycache__"
  "$work/python/bin/python3.11" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' || exit 77
  cp "$site"/*.pth "$work"
  rm -rf "$1"
  "$work/python/bin/python3.11" -m venv --without-pip "$1"
  cp "$work"/*.pth "$site/"
  scan_sources "$1" CppExtension '[]'
  ERROR='Python.h: No such file' ROOT=python_headers_missing
}

fault_sources_cxx_standard() {
  FIRST='#include <ATen/ATen.h>' scan_sources "$1" CppExtension '["-std=c++14", "-Wfatal-errors"]'
  ERROR='C\+\+17 or later compatible compiler is required|C\+\+20 or later' ROOT=cxx_standard_too_low
}

fault_sources_arch_list() {
  real_nvcc >/dev/null
  scan_sources "$1" CUDAExtension '{"cxx": []}'
  PREPARE='TORCH_CUDA_ARCH_LIST=7.0'
  ERROR="Unsupported gpu architecture 'compute_70'" ROOT=nvcc_unknown_arch
}

fault_sources_arch_list_unknown_to_torch() {
  real_nvcc >/dev/null
  scan_sources "$1" CUDAExtension '{"cxx": []}'
  PREPARE='TORCH_CUDA_ARCH_LIST=9.9'
  ERROR='Unknown CUDA arch \(9.9\)' ROOT=nvcc_unknown_arch
}

fault_sources_arch_in_setup_py() {
  real_nvcc >/dev/null
  scan_sources "$1" CUDAExtension '{"nvcc": ["-gencode", "arch=compute_35,code=sm_35"]}'
  ERROR="Unsupported gpu architecture 'compute_35'" ROOT=nvcc_unknown_arch
}

fault_sources_torch_asks_for_a_gpu() {
  real_nvcc >/dev/null
  no_gpu_here
  scan_sources "$1" CUDAExtension '{"cxx": []}'
  ERROR='IndexError: list index out of range' ROOT=no_gpu_at_build
}

fault_sources_ask_for_a_gpu() {
  real_nvcc >/dev/null
  no_gpu_here
  scan_sources "$1" CUDAExtension '{"nvcc": [f"-arch=sm_{major}{minor}"]}' 'major, minor = torch.cuda.get_device_capability()'
  ERROR='Found no NVIDIA driver|No CUDA GPUs are available' ROOT=no_gpu_at_build
}

fault_sources_without_torch() {
  local entry site
  site=$(fx_site "$1/bin/python")
  rm -f "$site"/*.pth
  # The build tools are there, torch is not.
  for entry in "$(fx_site "$(fx_torch_env)/bin/python")"/*; do
    case ${entry##*/} in torch*) ;; *) ln -sf "$entry" "$site/" ;; esac
  done
  scan_sources "$1" CppExtension '[]'
  ERROR="No module named 'torch'" ROOT=torch_missing_at_build
}

fault_sources_of_an_old_torch() {
  FIRST='#include <THC/THC.h>' scan_sources "$1" CppExtension '[]'
  ERROR='THC/THC.h: No such file' ROOT=torch_api_removed_in_source
}

# torch asks the compiler for its version and refuses it before it compiles.
fault_sources_compiler_too_new() {
  real_nvcc >/dev/null
  mkdir -p "$work/bin"
  printf '#!/bin/sh\nfor a; do [ "$a" = -dumpversion ] && echo 99.1.0 && exit; done\nexec /usr/bin/g++ "$@"\n' >"$work/bin/g++-99"
  chmod +x "$work/bin/g++-99"
  scan_sources "$1" CUDAExtension '{"nvcc": ["-gencode=arch=compute_90,code=sm_90"]}'
  PREPARE="CXX=$work/bin/g++-99"
  ERROR='greater than the maximum required version by CUDA' ROOT=host_compiler_unsupported
}

# A folder that the user names, from somewhere else.
fault_sources_named() {
  real_nvcc >/dev/null
  scan_sources "$1" CUDAExtension '{"nvcc": ["-gencode", "arch=compute_35,code=sm_35"]}'
  STARTS_IN=$work DOCTOR="--sources $work/sources"
  IMPORT="import os; os.chdir('sources'); $IMPORT"
  ERROR="Unsupported gpu architecture 'compute_35'" ROOT=nvcc_unknown_arch
}

# A program of the user's own in the current folder needs the module as it starts.
fault_module_needed_by_a_program() {
  echo 'import torch, selective_scan_cuda' >"$work/train.py"
  IMPORT='import runpy; runpy.run_path("train.py")'
  ERROR="No module named 'selective_scan_cuda'" ROOT=module_not_built
}

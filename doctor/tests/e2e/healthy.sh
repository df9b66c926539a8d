#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# healthy.sh CASE SCANKIT MODULES WORK: environments in which nothing is wrong must be called healthy, exit status 0.
set -euo pipefail
FAULTS=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=ci/fixtures.sh
. "$FAULTS/../../../ci/fixtures.sh"
# shellcheck source=doctor/tests/e2e/faults.sh
. "$FAULTS/faults.sh"
# shellcheck source=doctor/tests/e2e/faults_truth.sh
. "$FAULTS/faults_truth.sh"
# shellcheck source=doctor/tests/e2e/healthy_more.sh
. "$FAULTS/healthy_more.sh"
# shellcheck source=doctor/tests/e2e/faults_packages.sh
. "$FAULTS/faults_packages.sh"
# shellcheck source=doctor/tests/e2e/expect.sh
. "$FAULTS/expect.sh"
name=$1 scankit=$2 MODULES=$3 work=$4/healthy_$1
rm -rf "$work" && mkdir -p "$work"
work=$(cd "$work" && pwd)

# case_NAME: makes $env; sets IMPORT (what must work there, "" for nothing) and PREPARE (environment).
case_torch_only() { env=$(fx_scratch_env "$work/env" plain) IMPORT='import torch'; }
# Nothing is wrong, and nothing was there to be looked at.
case_no_torch() {
  env=$(fx_scratch_env "$work/env" bare) IMPORT='import json'
  VERDICT=empty STATUS=4
}
case_good_module() {
  env=$(fx_scratch_env "$work/env" pth) IMPORT='import torch, selective_scan_cuda'
  link_good "$(module_file "$env")" "$env"
}
case_good_module_no_torch_path() {
  env=$(fx_scratch_env "$work/env" plain) IMPORT='import torch, selective_scan_cuda'
  link_good "$(module_file "$env")" "$env"
}
# A venv whose Python was upgraded keeps the old one's folder; no interpreter looks there.
case_leftovers_of_another_python() {
  local old
  case_good_module
  old=$env/lib/python3.6/site-packages
  mkdir -p "$old"
  head -c 5000 "$(module_file "$env")" >"$old/selective_scan_cuda.cpython-36m-x86_64-linux-gnu.so"
}
case_harmless_ld_library_path() {
  case_good_module
  PREPARE="LD_LIBRARY_PATH=/usr/lib/x86_64-linux-gnu:$work/nothing-here:"
}
# The package needs transformers; triton and causal-conv1d are optional for it, and not installed.
case_mamba_1_2() {
  case_good_module
  install_release "$env" mamba-ssm 1.2.0.post1
  install_transformers_4 "$env"
  IMPORT='import mamba_ssm'
}
case_mamba_1_2_with_conv() {
  case_mamba_1_2
  install_release "$env" causal-conv1d 1.4.0
  link_conv "$env" 7
  IMPORT='import mamba_ssm, causal_conv1d'
}
case_mamba_2_without_conv() {
  case_good_module
  install_mamba "$env"
  install_transformers_4 "$env"
  install_with "$env" "$FX_TRITON"
  IMPORT='import mamba_ssm; mamba_ssm.Mamba2'
}
case_conv_alone() {
  case_good_module
  install_release "$env" causal-conv1d 1.6.0
  link_conv "$env" 8
  IMPORT='import causal_conv1d'
}
case_startup_noise() {
  case_good_module
  printf 'import sys\nfor i in range(20000): print("noise", i, "{\\"verdict\\": 1}")\nsys.stderr.write("\\x1b[31mred")\n' |
    fx_at_start "$env/bin/python"
}

# Folders of sources that are no torch extension, or a good one, whose build really works.
case_plain_python_project() {
  env=$(fx_scratch_env "$work/env" plain) IMPORT='import plain'
  printf 'from setuptools import setup\nsetup(name="plain", py_modules=["plain"])\n' >"$work/setup.py"
  echo 'x = 1' >"$work/plain.py"
}
case_cpp_project() {
  env=$(fx_scratch_env "$work/env" bare) IMPORT='import json' VERDICT=empty STATUS=4
  printf 'project(tool LANGUAGES CXX)\nset(CMAKE_CXX_STANDARD 11)\nadd_executable(tool missing.cpp)\n' >"$work/CMakeLists.txt"
}
case_checkout_of_mamba() {
  env=$(fx_scratch_env "$work/env" plain) IMPORT='import torch'
  mkdir -p "$work/mamba_ssm/ops"
  echo 'import selective_scan_cuda' | tee "$work/mamba_ssm/ops/selective_scan_interface.py" >"$work/test_scan.py"
}
case_good_extension_sources() {
  local flags=''
  env=$(fx_scratch_env "$work/env" pth)
  mkdir -p "$work/csrc"
  command -v nvcc >/dev/null && flags=', "csrc/scan_fwd.cu"'
  cat >"$work/setup.py" <<PY
import sys
from setuptools import setup
import torch
from torch.utils.cpp_extension import BuildExtension, CppExtension, CUDAExtension
kind = $([ -n "$flags" ] && echo CUDAExtension || echo CppExtension)
flags = ["-O2"] + (["/std:c++14"] if sys.platform == "win32" else ["-std=c++17"])
if sys.platform == "win32":
    flags.append("-std=c++14")
setup(name="scan", cmdclass={"build_ext": BuildExtension}, ext_modules=[kind("scan_cuda", ["csrc/scan.cpp"$flags],
      extra_compile_args={"cxx": flags, "nvcc": ["-gencode", "arch=compute_90,code=sm_90"]})])
PY
  printf '[tool.uv]\nno-build-isolation-package = ["scan"]\n' >"$work/pyproject.toml"
  printf '#include "scan.h"\n#include <Python.h>\nint scan() { return 0; }\n' >"$work/csrc/scan.cpp"
  printf '#pragma once\n#ifdef OLD_TORCH\n#include <THC/THC.h>\n#endif\n' >"$work/csrc/scan.h"
  printf '#include <cuda_fp16.h>\n__global__ void scan_fwd(__half* x) { *x = __float2half(1.0f); }\n' >"$work/csrc/scan_fwd.cu"
  IMPORT='import runpy, sys; sys.argv = ["setup.py", "build_ext"]; runpy.run_path("setup.py", run_name="__main__")'
}

IMPORT='' PREPARE='' ROOT='' FOUND='' VERDICT=healthy STATUS=0
if declare -F "case_$name" >/dev/null; then "case_$name"; else "$name"; fi
cd "$work"
# shellcheck disable=SC2086
env $PREPARE "$env/bin/python" -c "$IMPORT" >import.txt 2>&1 ||
  expect_fail "the environment is not healthy: $(tail -n 1 import.txt)"
for way in doctor static; do
  options=(doctor --python "$env/bin/python" --json)
  [ "$way" = static ] && options+=(--no-import)
  # shellcheck disable=SC2086
  env $PREPARE "$scankit" "${options[@]}" >$way.json 2>$way.err && code=0 || code=$?
  expect_report $way.json "$code"
  jq -e 'all(.findings[]; .severity != "warning")' $way.json >/dev/null || expect_fail "$way: a warning in a healthy environment"
done
rm -rf "$env"
echo "ok: $name"

# shellcheck shell=bash
# shellcheck disable=SC2034,SC2154  # run_fault.sh reads what the functions set, and sets $work
# SPDX-License-Identifier: Apache-2.0
# Builds that the machine stops, and not the sources: a full disk, two disks, too little memory, pip's isolation; and two
# modules of one program that do not know each other's types. CMake finds the functions as in faults.sh.

as_root() { [ "$(id -u)" = 0 ] || { echo "SKIP: only root may $1"; exit 77; }; }

# small_disk PATH SIZE: a file system of its own, gone with this script.
small_disk() {
  as_root "mount a file system"
  mkdir -p "$1"
  mount -t tmpfs -o "size=$2" none "$1" 2>/dev/null || { echo "SKIP: no file system can be mounted here"; exit 77; }
  # shellcheck disable=SC2064  # as it is now
  trap "umount '$1'" EXIT
}

# nvcc writes what the preprocessor makes of a source to TMPDIR.
fault_sources_small_tmp() {
  real_nvcc >/dev/null
  small_disk "$work/tmp" 256k
  scan_sources "$1" CUDAExtension '{"nvcc": ["-gencode=arch=compute_90,code=sm_90"]}'
  PREPARE="TMPDIR=$work/tmp"
  ERROR='No space left on device' ROOT=disk_full
}

# A setup.py as that of mamba-ssm 1.x: it asks for a ready wheel, and renames what came.
fault_sources_wheel_across_disks() {
  small_disk "$work/tmp" 8m
  scan_sources "$1" CppExtension '[]'
  local wheel
  wheel=$(find "$(fx_wheels)" -name 'iniconfig-*.whl' -print -quit)
  cat >"$work/sources/fetch.py" <<PY
import os, urllib.request
try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:
    from wheel.bdist_wheel import bdist_wheel

class FetchedWheel(bdist_wheel):
    def run(self):
        os.makedirs(self.dist_dir, exist_ok=True)
        urllib.request.urlretrieve("file://$wheel", "scan.whl")
        os.rename("scan.whl", os.path.join(self.dist_dir, "scan.whl"))
PY
  sed -e '1,/^import torch$/d' "$work/sources/setup.py" >"$work/rest.py"
  {
    echo 'from setuptools import setup'
    cat "$work/sources/fetch.py"
    echo 'import torch'
    sed 's/"build_ext": BuildExtension/"build_ext": BuildExtension, "bdist_wheel": FetchedWheel/' "$work/rest.py"
  } >"$work/sources/setup.py"
  rm "$work/sources/fetch.py"
  PREPARE="TMPDIR=$work/tmp"
  IMPORT="import runpy, sys, tempfile; sys.argv = ['setup.py', 'bdist_wheel', '--dist-dir', tempfile.gettempdir() + '/wheels']; runpy.run_path('setup.py', run_name='__main__')"
  # Only where a ready wheel exists does it come to that.
  ERROR='Errno 18\] Invalid cross-device link' FOUND=cross_device_link LOG=cross_device_link VERDICT=healthy STATUS=0
}

# The real pip, with the isolation that it uses unless it is told not to.
fault_sources_isolated_pip() {
  scan_sources "$1" CppExtension '[]'
  cat >>"$work/sources/csrc/scan.cpp" <<'CC'
static PyModuleDef scan_module = {PyModuleDef_HEAD_INIT, "scan_cuda", nullptr, -1, nullptr};
PyMODINIT_FUNC PyInit_scan_cuda() { return PyModule_Create(&scan_module); }
CC
  printf '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n' >"$work/sources/pyproject.toml"
  IMPORT="import subprocess, sys; sys.exit(subprocess.call(['$(fx_torch_env)/bin/python', '-m', 'pip',
    '--disable-pip-version-check', '--python', sys.executable, 'install', '--no-index', '--find-links', '$(fx_wheels)', '.']))"
  # A warning: pip can be told to build where torch is.
  ERROR="No module named 'torch'" FOUND=torch_missing_at_build LOG=torch_missing_at_build VERDICT=healthy STATUS=0
}

# The compilers that the killed build left behind are in it.
leave_group() {
  echo $$ >"$(dirname "$1")/cgroup.procs"
  xargs -r kill -9 <"$1/cgroup.procs" 2>/dev/null || true
  for _ in 1 2 3 4 5; do rmdir "$1" 2>/dev/null && return 0 || sleep 1; done
}

# A group of processes with memory for one compiler and not for three, as a batch system or a container sets it.
fault_sources_memory_of_a_group() {
  local group=/sys/fs/cgroup/memory/scankit-$$ limit=memory.limit_in_bytes
  real_nvcc >/dev/null
  as_root "make a control group"
  [ -d /sys/fs/cgroup/memory ] || group=/sys/fs/cgroup/scankit-$$ limit=memory.max
  mkdir "$group" 2>/dev/null && echo 1400000000 2>/dev/null >"$group/$limit" ||
    { rmdir "$group" 2>/dev/null || true; echo "SKIP: no control group can be made here"; exit 77; }
  # shellcheck disable=SC2064
  trap "leave_group '$group'" EXIT
  echo $$ >"$group/cgroup.procs"
  scan_sources "$1" CUDAExtension '{"nvcc": ["-gencode=arch=compute_90,code=sm_90"]}'
  printf '#include <ATen/core/Tensor.h>\n__global__ void scan_fwd() {}\n' >"$work/sources/csrc/scan_fwd.cu"
  sed 's/scan_fwd/scan_bwd/' "$work/sources/csrc/scan_fwd.cu" >"$work/sources/csrc/scan_bwd.cu"
  sed 's/scan_fwd/scan_step/' "$work/sources/csrc/scan_fwd.cu" >"$work/sources/csrc/scan_step.cu"
  sed 's/scan_fwd/scan_update/' "$work/sources/csrc/scan_fwd.cu" >"$work/sources/csrc/scan_update.cu"
  sed -i 's|"csrc/scan_fwd.cu"|"csrc/scan_fwd.cu", "csrc/scan_bwd.cu", "csrc/scan_step.cu", "csrc/scan_update.cu"|' "$work/sources/setup.py"
  PREPARE='MAX_JOBS=4'
  # The kernel kills the biggest of the group, compiler or setup.py; a shell says of the latter what this line does.
  IMPORT='import subprocess, sys; code = subprocess.call([sys.executable, "setup.py", "build_ext", "--inplace"]); print("Killed" if code == -9 else ""); sys.exit(code != 0)'
  ERROR='Killed|died due to signal 9|signal 9' ROOT=build_oom LOG=none
}

# pybind_module ENV PYBIND NAME: compiled with the headers of that release.
pybind_module() {
  local headers=$SCANKIT_CACHE/headers/pybind11-$2 include
  [ -d "$headers/pybind11" ] || {
    fx_download "$headers.wheel" "pybind11==$2" && mkdir -p "$headers" && unzip -q "$headers.wheel"/*.whl -d "$headers"
  } >&2
  include=$("$(fx_python)" -c 'import sysconfig; print(sysconfig.get_path("include"))')
  g++ -std=c++17 -O0 -w -fPIC -shared -fvisibility=hidden -I"$headers/pybind11/include" -I"$include" \
    "$FAULTS/module/$3.cc" -o "$(fx_site "$1/bin/python")/$3$(fx_suffix "$1/bin/python")"
}

fault_pybind_internals() {
  pybind_module "$1" 2.13.6 base_ops &
  pybind_module "$1" 3.0.1 derived_ops
  wait
  IMPORT='import torch, derived_ops' DOCTOR='--module base_ops --module derived_ops'
  ERROR='referenced unknown base type' ROOT=pybind_internals_mismatch LOG=none ONLY_OBSERVED=1
}

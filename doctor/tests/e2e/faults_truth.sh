# shellcheck shell=bash
# shellcheck disable=SC2034  # run_fault.sh reads what the functions set
# SPDX-License-Identifier: Apache-2.0
# Faults of every class that can be planted without a GPU and is not in faults.sh: see there for what a function sets.

python_include() { "$1" -c 'import sysconfig; print(sysconfig.get_path("include"))'; }

# plain_module OUTPUT PYTHON SOURCE|- [FLAG...]: a C module compiled for PYTHON; "-" reads the source from standard input.
plain_module() {
  local output=$1 include source=$3
  include=$(python_include "$2")
  shift 3
  mkdir -p "$(dirname "$output")"
  if [ "$source" = - ]; then
    gcc -shared -fPIC -O1 -w -I"$include" -x c - -x none -o "$output" "$@"
  else
    gcc -shared -fPIC -O1 -w -I"$include" "$source" -o "$output" "$@"
  fi
}

# stub_library SONAME NAME FOLDER [VERSION]: what the linker needs of a library that is not here, with one function.
stub_library() {
  mkdir -p "$3"
  echo "int $2(void) { return 0; }" >"$3/$1.c"
  printf '%s { global: *; };\n' "${4:-V1}" >"$3/$1.map"
  local map=()
  [ -z "${4:-}" ] || map=("-Wl,--version-script,$3/$1.map")
  gcc -shared -fPIC -nostdlib "$3/$1.c" -Wl,-soname,"$1" "${map[@]}" -o "$3/$1"
}

# needs_library ENV SONAME NAME [VERSION]: the good module, and one call of NAME, which SONAME had where it was linked.
needs_library() {
  stub_library "$2" "$3" "$1.stub" "${4:-}"
  echo "int $3(void); int selective_scan_asks(void); int selective_scan_asks(void) { return $3(); }" |
    gcc -O1 -fPIC -x c -c - -o "$1.stub/asks.o"
  link_module "$(module_file "$1")" "$1" "$MODULES/binding.o" "$MODULES/scan.o" "$1.stub/asks.o" "$1.stub/$2"
  rm -r "$1.stub"
}

# The compiler of the build machine was newer: the file is bound to versions that this libstdc++ does not have.
fault_libstdcxx_too_old() {
  needs_library "$1" libstdc++.so.6 _ZSt21__glibcxx_newer_thingv GLIBCXX_3.4.99
  ERROR="version .GLIBCXX_3.4.99' not found" ROOT=libstdcxx_too_old
}
fault_libstdcxx_too_old_cxxabi() {
  needs_library "$1" libstdc++.so.6 __cxa_newer_thing CXXABI_1.3.99
  ERROR="version .CXXABI_1.3.99' not found" ROOT=libstdcxx_too_old
}

# Other CUDA libraries than the runtime carry a major in their names too.
fault_missing_cublas() {
  needs_library "$1" libcublas.so.11 cublasCreate_v2 libcublas.so.11
  ERROR='libcublas.so.11: cannot open shared object file' ROOT=missing_cudart
}
fault_missing_cudnn() {
  needs_library "$1" libcudnn.so.8 cudnnCreate libcudnn.so.8
  ERROR='libcudnn.so.8: cannot open shared object file' ROOT=missing_cudart
}
fault_missing_nccl_of_another_major() {
  needs_library "$1" libnccl.so.1 ncclCommAbort
  ERROR='libnccl.so.1: cannot open shared object file' ROOT=missing_cudart
}

fault_no_driver_libcuda() {
  ldconfig -p 2>/dev/null | grep -q 'libcuda\.so\.1 ' && exit 77 # a driver is installed: nothing to plant
  needs_library "$1" libcuda.so.1 cuInit
  ERROR='libcuda.so.1: cannot open shared object file' ROOT=no_driver_libcuda
}

# A build of torch 1.10 to 1.12 was linked with the two halves of a CUDA library that is one again since.
fault_torch_library_of_old_releases() {
  needs_library "$1" libtorch_cuda_cu.so _ZN2at4cuda9warp_sizeEv
  ERROR='libtorch_cuda_cu.so: cannot open shared object file' ROOT=torch_version_mismatch
}
fault_built_for_rocm() {
  needs_library "$1" libc10_hip.so _ZN3c103hip12device_countEv
  ERROR='libc10_hip.so: cannot open shared object file' ROOT=torch_version_mismatch
}

# torch was installed without what it depends on, or was cleaned of what looked useless.
fault_torch_incomplete_own_library() {
  rewrap_plain "$1"
  link_good "$(module_file "$1")" "$1"
  rm "$(fx_site "$1/bin/python")/torch/lib/libshm.so"
  IMPORT='import torch' ERROR='libshm.so: cannot open shared object file' ROOT=torch_incomplete
}
fault_torch_incomplete_no_deps() {
  rewrap_plain "$1"
  rm -r "$(fx_site "$1/bin/python")"/nvidia/cusparselt
  IMPORT='import torch' ERROR='libcusparseLt.so.0: cannot open shared object file' ROOT=torch_incomplete
}
rewrap_plain() { fx_scratch_env "$1" plain >/dev/null; }

# An interpreter of the same name with other structures: a debug build counts references in every call.
fault_python_debug_build() {
  plain_module "$(fx_site "$1/bin/python")/selective_scan_cuda.cpython-311d-x86_64-linux-gnu.so" "$1/bin/python" \
    "$FAULTS/module/plain.c"
  install_mamba "$1"
  ERROR="ModuleNotFoundError: No module named 'selective_scan_cuda'" ROOT=python_abi_tag_mismatch LOG=module_not_built
}
fault_python_debug_names() {
  plain_module "$(module_file "$1")" "$1/bin/python" - <<'C'
#include <Python.h>
PyObject* PyModule_Create2TraceRefs(struct PyModuleDef*, int);
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "selective_scan_cuda", 0, -1, 0};
PyMODINIT_FUNC PyInit_selective_scan_cuda(void) { return PyModule_Create2TraceRefs(&definition, 1013); }
C
  ERROR='undefined symbol: PyModule_Create2TraceRefs' ROOT=python_abi_tag_mismatch
}
fault_python_free_threaded() {
  plain_module "$(fx_site "$1/bin/python")/selective_scan_cuda.cpython-313t-x86_64-linux-gnu.so" "$1/bin/python" \
    "$FAULTS/module/plain.c"
  install_mamba "$1"
  ERROR="ModuleNotFoundError: No module named 'selective_scan_cuda'" ROOT=python_abi_tag_mismatch LOG=module_not_built
}
fault_python_pypy() {
  plain_module "$(fx_site "$1/bin/python")/selective_scan_cuda.pypy310-pp73-x86_64-linux-gnu.so" "$1/bin/python" \
    "$FAULTS/module/plain.c"
  install_mamba "$1"
  ERROR="ModuleNotFoundError: No module named 'selective_scan_cuda'" ROOT=python_abi_tag_mismatch LOG=module_not_built
}
# "Renaming it does not help": a plain .so is taken by every Python, and this one asks for a function that came later.
fault_python_of_later_release() {
  # A function of 3.13, or where that is what runs here, of 3.14.
  local later=PyList_GetItemRef
  "$1/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 13))' && later=PyUnicode_Equal
  plain_module "$(fx_site "$1/bin/python")/selective_scan_cuda.so" "$1/bin/python" - <<C
#include <Python.h>
PyObject* $later(PyObject*, Py_ssize_t);
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "selective_scan_cuda", 0, -1, 0};
PyMODINIT_FUNC PyInit_selective_scan_cuda(void) {
  PyObject* list = PyList_New(0);
  $later(list, 0);
  return PyModule_Create(&definition);
}
C
  ERROR="undefined symbol: $later" ROOT=python_abi_tag_mismatch
}
# Built on Alpine: its C library is another, and its interpreter another file.
fault_python_of_musl_by_tag() {
  plain_module "$(fx_site "$1/bin/python")/selective_scan_cuda.cpython-311-x86_64-linux-musl.so" "$1/bin/python" \
    "$FAULTS/module/plain.c"
  install_mamba "$1"
  ERROR="ModuleNotFoundError: No module named 'selective_scan_cuda'" ROOT=python_abi_tag_mismatch LOG=module_not_built
}
fault_python_of_musl_by_library() {
  stub_library libc.musl-x86_64.so.1 strlen "$1.stub"
  plain_module "$(module_file "$1")" "$1/bin/python" "$FAULTS/module/plain.c" -nostdlib -Wl,--no-as-needed \
    "$1.stub/libc.musl-x86_64.so.1"
  rm -r "$1.stub"
  ERROR='libc.musl-x86_64.so.1: cannot open shared object file' ROOT=python_abi_tag_mismatch
}
fault_python_linked_with_libpython() {
  needs_library "$1" libpython3.10.so.1.0 Py_GetCompiler
  ERROR='libpython3.10.so.1.0: cannot open shared object file' ROOT=python_abi_tag_mismatch
}
fault_python_2_module() {
  plain_module "$(module_file "$1")" "$1/bin/python" - <<'C'
void initselective_scan_cuda(void) {}
C
  ERROR='dynamic module does not define module export function' ROOT=python_abi_tag_mismatch LOG=variant_name_mismatch
}

fault_wrong_machine_32_bit() {
  echo 'int PyInit_selective_scan_cuda(void) { return 0; }' |
    gcc -m32 -shared -fPIC -nostdlib -x c - -o "$(module_file "$1")" || exit 77
  ERROR='wrong ELF class: ELFCLASS32' ROOT=wrong_machine_arch
}

# VMamba's variants: one build, copied to the name that another program asks for.
fault_variant_name_mismatch() {
  sed 's/selective_scan_cuda/selective_scan_cuda_oflex/g' "$FAULTS/module/plain.c" |
    plain_module "$(module_file "$1")" "$1/bin/python" -
  ERROR='dynamic module does not define module export function \(PyInit_selective_scan_cuda\)' ROOT=variant_name_mismatch
}
# A library of torch operators, which torch.ops.load_library loads and import cannot.
fault_variant_name_no_module() {
  local include
  link_module "$(module_file "$1")" "$1" "$MODULES/scan.o"
  IMPORT='import torch, selective_scan_cuda' DOCTOR='--module selective_scan_cuda'
  ERROR='dynamic module does not define module export function' ROOT=variant_name_mismatch
}

fault_windows() {
  { printf 'MZ\220\0\3\0\0\0'; head -c 4000 /dev/zero; printf 'PE\0\0d\206'; head -c 4000 /dev/zero; } \
    >"$(module_file "$1")"
  ERROR='invalid ELF header' ROOT=windows LOG=corrupt_binary
}
fault_windows_pyd() {
  { printf 'MZ\220\0\3\0\0\0'; head -c 8000 /dev/zero; } >"$(fx_site "$1/bin/python")/selective_scan_cuda.cp311-win_amd64.pyd"
  install_mamba "$1"
  ERROR="ModuleNotFoundError: No module named 'selective_scan_cuda'" ROOT=windows LOG='module_not_built'
}

fault_corrupt_binary_zip() {
  python3 - "$(module_file "$1")" <<'PY'
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as archive:
    archive.writestr("selective_scan_cuda.so", bytes(20000))
PY
  ERROR='invalid ELF header' ROOT=corrupt_binary
}
fault_corrupt_binary_macos() {
  { printf '\317\372\355\376\7\0\0\1'; head -c 9000 /dev/zero; } >"$(module_file "$1")"
  ERROR='invalid ELF header' ROOT=corrupt_binary
}
# A disk that was full: the file has its length, and zeros where the copy stopped.
fault_corrupt_binary_zeros() {
  link_good "$(module_file "$1")" "$1"
  dd if=/dev/zero of="$(module_file "$1")" bs=4096 count=8 conv=notrunc status=none
  ERROR='invalid ELF header' ROOT=corrupt_binary
}

# A wheel was unpacked without its compiled file: RECORD lists it, and it is not there.
fault_module_not_built_interrupted() {
  install_mamba "$1"
  local site
  site=$(fx_site "$1/bin/python")
  echo 'selective_scan_cuda.cpython-311-x86_64-linux-gnu.so,,' >>"$(echo "$site"/mamba_ssm-*.dist-info)/RECORD"
  ERROR="ModuleNotFoundError: No module named 'selective_scan_cuda'" ROOT=module_not_built
}
# Python imports sources from a zip file and never a compiled module (zipimport's documentation).
fault_module_in_a_zipped_egg() {
  local site egg
  site=$(fx_site "$1/bin/python") egg=selective_scan-1.0-py3.11-linux-x86_64.egg
  link_good "$1.file/selective_scan_cuda$(fx_suffix "$1/bin/python")" "$1"
  (cd "$1.file" && python3 -m zipfile -c "$site/$egg" ./*.so)
  rm -r "$1.file"
  echo "./$egg" >"$site/easy-install.pth"
  install_mamba "$1"
  ERROR="ModuleNotFoundError: No module named 'selective_scan_cuda'" ROOT=module_not_built
}
# A checkout whose build was never run, put on the path by a .pth line as `pip install -e` does.
fault_module_not_built_editable() {
  local wheel
  wheel=$(fx_mamba_wheel)
  mkdir -p "$1.checkout"
  (cd "$1.checkout" && unzip -q "$wheel" 'mamba_ssm/*')
  echo "$1.checkout" >"$(fx_site "$1/bin/python")/__editable__.mamba_ssm.pth"
  DOCTOR='--module selective_scan_cuda'
  ERROR="ModuleNotFoundError: No module named 'selective_scan_cuda'" ROOT=module_not_built
}

fault_import_crash() {
  plain_module "$(module_file "$1")" "$1/bin/python" - <<'C'
#include <Python.h>
#include <signal.h>
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "selective_scan_cuda", 0, -1, 0};
PyMODINIT_FUNC PyInit_selective_scan_cuda(void) {
  *(volatile int*)8 = 1;
  return PyModule_Create(&definition);
}
C
  ERROR='' ROOT=import_crash ONLY_OBSERVED=yes
}
# What a stale lock or a dead mount does to the process: it sleeps in the kernel.
fault_import_hang() {
  plain_module "$(module_file "$1")" "$1/bin/python" - <<'C'
#include <Python.h>
#include <unistd.h>
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "selective_scan_cuda", 0, -1, 0};
PyMODINIT_FUNC PyInit_selective_scan_cuda(void) {
  for (;;) pause();
  return PyModule_Create(&definition);
}
C
  IMPORT='import faulthandler; faulthandler.dump_traceback_later(4, exit=True); import selective_scan_cuda'
  ERROR='Timeout \(0:00:04\)!' ROOT=import_hang DOCTOR='--timeout 5' ONLY_OBSERVED=yes
}

# A folder of the current directory has torch's name: an unpacked source archive, or the user's own file.
fault_torch_sources_in_the_current_folder() {
  link_good "$(module_file "$1")" "$1"
  mkdir -p "$1.checkout/torch/_C"
  printf 'from torch._C import *\nraise ImportError("Failed to load PyTorch C extensions")\n' >"$1.checkout/torch/__init__.py"
  : >"$1.checkout/torch/_C/__init__.pyi"
  STARTS_IN=$1.checkout ERROR='Failed to load PyTorch C extensions|No module named .torch._C|partially initialized' ROOT=torch_incomplete
}

# Its headers are the same for every Python; the newest have no wheel of it, and pip would compile one.
fx_make_numpy_1() {
  mkdir -p "$1" "$1.download" && fx_fetch "$1.download" --no-deps --only-binary :all: --python-version 3.12 numpy==1.26.4 && unzip -q "$1.download"/numpy-*.whl -d "$1" && rm -rf "$1.download"
}
# Compiled with numpy 1's headers, run with numpy 2: the file is whole and every name is there.
fault_numpy_abi() {
  local numpy
  numpy=$(fx_once "$SCANKIT_CACHE/numpy-1.26.4" fx_make_numpy_1) || exit 77
  plain_module "$(module_file "$1")" "$1/bin/python" - -I"$numpy/numpy/core/include" <<'C'
#include <Python.h>
#include <numpy/arrayobject.h>
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "selective_scan_cuda", 0, -1, 0};
PyMODINIT_FUNC PyInit_selective_scan_cuda(void) {
  import_array();
  return PyModule_Create(&definition);
}
C
  IMPORT='import torch, selective_scan_cuda' ERROR='compiled against ABI version|multiarray failed to import'
  ROOT=python_abi_tag_mismatch ONLY_OBSERVED=yes
}

# g++ brings libgomp too, and torch has loaded its own, older copy of it.
fault_libgomp_of_torch_is_older() {
  needs_library "$1" libgomp.so.1 GOMP_newer_thing GOMP_9.9
  ERROR="version .GOMP_9.9' not found" ROOT=libstdcxx_too_old
}
# Linked into a checkout that was removed since: import asks whether it is a file, and goes on.
fault_module_link_to_nowhere() {
  install_mamba "$1"
  ln -s /nowhere/build/selective_scan_cuda.so "$(module_file "$1")"
  ERROR="ModuleNotFoundError: No module named 'selective_scan_cuda'" ROOT=module_not_built
}

# torchvision's way: a package of Python files loads a library of operators by its path, and that one is for another torch.
# The user names the package, of which nothing but its folder can be found.
fault_package_of_operators() {
  local package
  package=$(fx_site "$1/bin/python")/seeing
  mkdir -p "$package/lib"
  printf 'void gone(void) __asm__("_ZN5torch7Library13gone_for_goodEv");\nvoid run(void) { gone(); }\n' |
    gcc -shared -fPIC -x c - -Wl,-z,now -o "$package/lib/libseeing.so"
  echo 'import os, torch; torch.ops.load_library(os.path.join(os.path.dirname(__file__), "lib", "libseeing.so"))' >"$package/__init__.py"
  IMPORT='import seeing' DOCTOR='--module seeing'
  ERROR='undefined symbol: _ZN5torch7Library13gone_for_goodEv' ROOT=torch_version_mismatch SAYS='1 compiled extension of seeing'
}

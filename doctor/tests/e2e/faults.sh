# shellcheck shell=bash
# shellcheck disable=SC2034  # run_fault.sh reads what the functions set
# SPDX-License-Identifier: Apache-2.0
# One function a fault: fault_NAME ENV breaks ENV (a scratch venv that has torch) by the real mechanism and says what the
# doctor must answer. Sourced by run_fault.sh after ci/fixtures.sh. It reads $MODULES (build_modules.sh's objects) and
# sets: ERROR, a pattern that the real interpreter's own error must match; ROOT, the cause that must be the root; and
# where they differ from the usual: LOG (what the error by itself says, or none), ONLY_OBSERVED (the files say nothing),
# FOUND (causes that must all be found), VERDICT, STATUS, PREPARE (environment for Python and doctor alike, as NAME=VALUE
# words), DOCTOR (extra arguments), STARTS_IN (the current folder), DATED (arguments of expect_dated after the report), SAYS
# (a pattern that a line of the text report must match).

module_file() { printf '%s/selective_scan_cuda%s' "$(fx_site "$1/bin/python")" "$(fx_suffix "$1/bin/python")"; }

# link_module OUTPUT TORCH_ENV INPUT...: as setuptools links a torch extension: no RUNPATH, undefined names allowed.
link_module() {
  local output=$1 torch
  torch=$(fx_site "$2/bin/python")/torch
  [ -d "$torch" ] || torch=$(fx_site "$(fx_torch_env)/bin/python")/torch
  shift 2
  mkdir -p "$(dirname "$output")"
  g++ -shared -o "$output" "$@" -L"$torch/lib" -lc10 -ltorch_cpu -ltorch -ltorch_python
}

link_good() { link_module "$1" "$2" "$MODULES/binding.o" "$MODULES/scan.o"; }
# Against the installed torch these names are undefined; -shared lets them pass, as it did for the user.
link_stale() { link_module "$1" "$2" "$MODULES/binding-other.o" "$MODULES/scan-other.o"; }

# stub_cudart SONAME FOLDER: what the linker needs of a CUDA runtime that is not installed here.
stub_cudart() {
  mkdir -p "$2"
  echo "int cudaGetLastError(void) { return 0; }" >"$2/cudart.c"
  printf '%s { global: *; };\n' "$1" >"$2/cudart.map"
  gcc -shared -fPIC "$2/cudart.c" -Wl,-soname,"$1" -Wl,--version-script,"$2/cudart.map" -o "$2/libcudart.so"
}

install_mamba() { # ENV: the real mamba-ssm without its compiled module, by pip, with its metadata
  "$(fx_torch_env)/bin/python" -m pip --disable-pip-version-check -q --python "$1/bin/python" install --no-deps \
    --no-index --find-links "$(dirname "$(fx_mamba_wheel)")" mamba-ssm
}

fault_torch_version_mismatch() {
  link_stale "$(module_file "$1")" "$1"
  ERROR='undefined symbol: _ZN.*' ROOT=torch_version_mismatch LOG='torch_version_mismatch|abi_cxx11_mismatch'
  DATED="$(basename "$(module_file "$1")") ${FX_OTHER_TORCH%.*}"
  SAYS='^ +built for torch 2\.[0-9]+.*; 2\.11 is installed$'
}

fault_abi_cxx11_mismatch() {
  link_module "$(module_file "$1")" "$1" "$MODULES/binding-oldabi.o" "$MODULES/scan.o"
  ERROR='undefined symbol: _ZN3c10.*Ss' ROOT=abi_cxx11_mismatch
  # Built by the headers of the installed torch, whose own wheels have the new strings.
  DATED="$(basename "$(module_file "$1")") ${FX_TORCH%.*}"
  SAYS='old string ABI; 2\.11 is installed$|it was built with -D_GLIBCXX_USE_CXX11_ABI=0'
}

fault_missing_cudart_12() { missing_cudart "$1" libcudart.so.12; }
fault_missing_cudart_11() { missing_cudart "$1" libcudart.so.11.0; }
missing_cudart() {
  stub_cudart "$2" "$1.stub"
  link_module "$(module_file "$1")" "$1" "$MODULES/binding.o" "$MODULES/scan.o" "$MODULES/runtime.o" \
    "$1.stub/libcudart.so"
  rm -r "$1.stub"
  ERROR="${2//./\\.}: cannot open shared object file" ROOT=missing_cudart
}

# An old wheel: the loader names the runtime alone, and hides the old string ABI behind it.
fault_missing_cudart_over_old_abi() {
  stub_cudart libcudart.so.12 "$1.stub"
  link_module "$(module_file "$1")" "$1" "$MODULES/binding-oldabi.o" "$MODULES/scan.o" "$MODULES/runtime.o" \
    "$1.stub/libcudart.so"
  rm -r "$1.stub"
  ERROR='libcudart.so.12: cannot open shared object file' ROOT='missing_cudart|abi_cxx11_mismatch' LOG=missing_cudart
  FOUND='missing_cudart abi_cxx11_mismatch'
}

# A file compiled for another interpreter, copied beside the package that needs it.
fault_python_abi_tag_mismatch() {
  local other suffix=.cpython-310-x86_64-linux-gnu.so include
  other=$(fx_other_python "$1/bin/python")
  if [ -n "$other" ]; then
    suffix=$(fx_suffix "$other")
    include=$("$other" -c 'import sysconfig; print(sysconfig.get_path("include"))')
  fi
  [ -e "${include:-}/Python.h" ] ||
    include=$("$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
  gcc -shared -fPIC -I"$include" "$FAULTS/module/plain.c" -o "$(fx_site "$1/bin/python")/selective_scan_cuda$suffix"
  install_mamba "$1"
  ERROR="ModuleNotFoundError: No module named 'selective_scan_cuda'" ROOT=python_abi_tag_mismatch LOG=module_not_built
}

fault_module_not_built() {
  install_mamba "$1"
  ERROR="ModuleNotFoundError: No module named 'selective_scan_cuda'" ROOT=module_not_built
}

# The package swallows the failure: `import mamba_ssm` says nothing, the first call does.
fault_module_not_built_masked() {
  local file
  install_mamba "$1"
  file=$(fx_site "$1/bin/python")/mamba_ssm/ops/selective_scan_interface.py
  grep -q '^import selective_scan_cuda$' "$file"
  sed -i 's/^import selective_scan_cuda$/try:\n    import selective_scan_cuda\nexcept ImportError:\n    selective_scan_cuda = None/' "$file"
  ERROR="ModuleNotFoundError: No module named 'selective_scan_cuda'" ROOT=module_not_built
}

fault_corrupt_binary_truncated() {
  link_good "$1.good.so" "$1"
  head -c $(($(stat -c %s "$1.good.so") / 2)) "$1.good.so" >"$(module_file "$1")"
  rm "$1.good.so"
  ERROR='' ROOT=corrupt_binary # a cut file ends in an ImportError or in a bus error, by where it is cut
}

# VMamba's modules are looked for as well where one lies on the path.
fault_corrupt_binary_of_vmamba() {
  link_good "$1.good.so" "$1"
  head -c 100 "$1.good.so" >"$(fx_site "$1/bin/python")/selective_scan_cuda_oflex$(fx_suffix "$1/bin/python")"
  rm "$1.good.so"
  IMPORT='import torch, selective_scan_cuda_oflex' ERROR='ImportError.*(file too short|invalid|cannot)' ROOT=corrupt_binary
}

fault_corrupt_binary_header_only() {
  link_good "$1.good.so" "$1"
  head -c 100 "$1.good.so" >"$(module_file "$1")"
  rm "$1.good.so"
  ERROR='ImportError.*(file too short|invalid|cannot)' ROOT=corrupt_binary
}

fault_corrupt_binary_empty() {
  : >"$(module_file "$1")"
  ERROR='file too short' ROOT=corrupt_binary
}

fault_corrupt_binary_html() {
  printf '<!DOCTYPE html>\n<html><head><title>404: Not Found</title></head>\n<body>%s</body></html>\n' \
    "$(seq -s ' ' 1 2000)" >"$(module_file "$1")"
  ERROR='invalid ELF header' ROOT=corrupt_binary
}

fault_corrupt_binary_git_lfs() {
  printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 41600000\n' 7 >"$(module_file "$1")"
  ERROR='ImportError.*(file too short|invalid ELF header)' ROOT=corrupt_binary
}

fault_wrong_machine_arch() {
  local include
  include=$("$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
  # Debian's Python.h includes MACHINE/pythonX.Y/pyconfig.h; both machines have the same sizes.
  mkdir -p "$1.include/aarch64-linux-gnu"
  ln -s "/usr/include/x86_64-linux-gnu/${include##*/}" "$1.include/aarch64-linux-gnu/${include##*/}"
  aarch64-linux-gnu-gcc -shared -fPIC -I"$include" -I"$1.include" "$FAULTS/module/plain.c" -o "$(module_file "$1")"
  ERROR='ImportError.*(cannot open shared object file|wrong ELF|invalid ELF)' ROOT=wrong_machine_arch
}

fault_own_symbol_undefined() {
  link_module "$(module_file "$1")" "$1" "$MODULES/binding.o"
  ERROR='undefined symbol: _Z24selective_scan_reference' ROOT=own_symbol_undefined
}

# The module cannot come before torch, and the user's own program has it so.
fault_torch_not_imported_first() {
  link_good "$(module_file "$1")" "$1"
  mkdir -p "$1.project"
  printf 'import os\nimport numpy as np\nimport selective_scan_cuda\nimport torch\n' >"$1.project/train.py"
  STARTS_IN=$1.project
  IMPORT='import train' ERROR='lib(c10|torch.*)\.so: cannot open shared object file'
  ROOT=torch_not_imported_first
}

# The C library of the build machine was newer. A stub libc.so.6 with that version stands in for it at link time: what
# the file then says to the loader (a need of libc.so.6 version GLIBC_2.N) is the same as after a build over there.
fault_glibc_too_old() {
  local minor
  minor=$(ldd --version | sed -n '1s/.*\.//p')
  minor=$((minor + 2 > 38 ? minor + 2 : 38))
  mkdir -p "$1.stub"
  echo 'long __isoc23_strtol(const char* a, char** b, int c) { (void)a; (void)b; (void)c; return 0; }' >"$1.stub/c.c"
  echo "GLIBC_2.$minor { global: *; };" >"$1.stub/c.map"
  gcc -shared -fPIC -nostdlib "$1.stub/c.c" -Wl,-soname,libc.so.6 -Wl,--version-script,"$1.stub/c.map" \
    -o "$1.stub/libc_newer.so"
  link_module "$(module_file "$1")" "$1" "$MODULES/binding.o" "$MODULES/scan.o" "$MODULES/newer_glibc.o" \
    "$1.stub/libc_newer.so"
  rm -r "$1.stub"
  ERROR="version .GLIBC_2.$minor' not found" ROOT=glibc_too_old
}

# A good copy is installed; an older one that comes earlier is taken.
fault_several_copies_pythonpath() {
  link_good "$(module_file "$1")" "$1"
  link_stale "$1.checkout/selective_scan_cuda$(fx_suffix "$1/bin/python")" "$1"
  PREPARE=PYTHONPATH=$1.checkout
  ERROR="ImportError: $1.checkout/.*undefined symbol" ROOT=several_copies FOUND='several_copies torch_version_mismatch' LOG='torch_version_mismatch|abi_cxx11_mismatch'
}

fault_several_copies_same_folder() {
  link_good "$(fx_site "$1/bin/python")/selective_scan_cuda.abi3.so" "$1"
  link_stale "$(module_file "$1")" "$1"
  ERROR='undefined symbol' ROOT=several_copies FOUND='several_copies torch_version_mismatch' LOG='torch_version_mismatch|abi_cxx11_mismatch'
}

fault_several_copies_current_folder() {
  link_good "$(module_file "$1")" "$1"
  link_stale "$1.checkout/selective_scan_cuda$(fx_suffix "$1/bin/python")" "$1"
  STARTS_IN=$1.checkout
  ERROR="ImportError: .*undefined symbol" ROOT=several_copies FOUND='several_copies torch_version_mismatch' LOG='torch_version_mismatch|abi_cxx11_mismatch'
}

all_faults() { declare -F | sed -n 's/^declare -f fault_//p'; }

# shellcheck shell=bash
# shellcheck disable=SC2034  # run_fault.sh reads what the functions set
# SPDX-License-Identifier: Apache-2.0
# Two and three faults in one environment: the loader stops at the first, the doctor names those behind it too (FOUND), with
# the one to act on first as ROOT. See faults.sh for what a function sets.

# A wheel of another CUDA major, on a system that is older than the one it was built on.
fault_compound_cudart_and_glibc() {
  stub_library libcudart.so.12 cudaGetLastError "$1.stub" libcudart.so.12
  stub_library libc.so.6 __isoc23_strtol "$1.stub" GLIBC_2.99
  link_module "$(module_file "$1")" "$1" "$MODULES/binding.o" "$MODULES/scan.o" "$MODULES/runtime.o" \
    "$MODULES/newer_glibc.o" "$1.stub/libcudart.so.12" "$1.stub/libc.so.6"
  rm -r "$1.stub"
  ERROR='libcudart.so.12: cannot open shared object file|GLIBC_2.99. not found' ROOT=glibc_too_old LOG='glibc_too_old|missing_cudart'
  FOUND='glibc_too_old missing_cudart'
}
# The old wheel as it is found in the wild: another CUDA, the other string ABI and a source file that was left out.
fault_compound_three_in_one_file() {
  stub_library libcudart.so.11.0 cudaGetLastError "$1.stub" libcudart.so.11.0
  link_module "$(module_file "$1")" "$1" "$MODULES/binding-oldabi.o" "$MODULES/runtime.o" "$1.stub/libcudart.so.11.0"
  rm -r "$1.stub"
  ERROR='libcudart.so.11.0: cannot open shared object file' ROOT='abi_cxx11_mismatch|missing_cudart' LOG=missing_cudart
  FOUND='missing_cudart abi_cxx11_mismatch own_symbol_undefined'
}
# A stale copy comes first; the good one behind it would load.
fault_compound_shadow_over_cudart() {
  link_good "$(module_file "$1")" "$1"
  stub_library libcudart.so.12 cudaGetLastError "$1.stub" libcudart.so.12
  link_module "$1.checkout/selective_scan_cuda$(fx_suffix "$1/bin/python")" "$1" "$MODULES/binding-other.o" \
    "$MODULES/scan-other.o" "$MODULES/runtime.o" "$1.stub/libcudart.so.12"
  rm -r "$1.stub"
  PREPARE=PYTHONPATH=$1.checkout
  ERROR='libcudart.so.12: cannot open shared object file' ROOT=several_copies LOG=missing_cudart
  FOUND='several_copies torch_version_mismatch missing_cudart'
}
# torch itself does not start, and the module would not fit it either.
fault_compound_torch_and_module() {
  rewrap_plain "$1"
  link_stale "$(module_file "$1")" "$1"
  rm -r "$(fx_site "$1/bin/python")"/nvidia/cusparselt
  ERROR='libcusparseLt.so.0: cannot open shared object file' ROOT=torch_incomplete
  FOUND='torch_incomplete torch_version_mismatch'
}
# Two modules of one environment, each broken in its own way.
fault_compound_two_modules() {
  link_good "$(module_file "$1")" "$1"
  head -c 3000 "$(module_file "$1")" >"$1.cut" && mv "$1.cut" "$(module_file "$1")"
  needs_library_as "$1" causal_conv1d_cuda
}
needs_library_as() { # ENV MODULE: MODULE needs a CUDA runtime of another major
  stub_library libcudart.so.11.0 cudaGetLastError "$1.stub" libcudart.so.11.0
  sed "s/selective_scan_cuda/$2/g" "$FAULTS/module/plain.c" |
    plain_module "$(fx_site "$1/bin/python")/$2$(fx_suffix "$1/bin/python")" "$1/bin/python" - "$MODULES/runtime.o" \
      "$1.stub/libcudart.so.11.0"
  rm -r "$1.stub"
  ERROR='' ROOT='corrupt_binary|missing_cudart' FOUND='corrupt_binary missing_cudart'
}

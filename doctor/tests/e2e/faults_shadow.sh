# shellcheck shell=bash
# shellcheck disable=SC2034  # run_fault.sh reads what the functions set
# SPDX-License-Identifier: Apache-2.0
# Libraries that the loader takes although they lack what is wanted of them. See faults.sh.

# other_release SONAME FOLDER NAME...: a library of that soname whose version of the same name holds NAMEs alone.
other_release() {
  local soname=$1 folder=$2 name
  shift 2
  mkdir -p "$folder"
  for name; do echo "int $name(void) { return 0; }"; done >"$folder/other.c"
  printf '%s { global: *; };\n' "$soname" >"$folder/other.map"
  gcc -shared -fPIC "$folder/other.c" -Wl,-soname,"$soname" -Wl,--version-script,"$folder/other.map" -o "$folder/$soname"
}

# The most reported one: a toolkit's folder in the variable. cuSPARSE has a RUNPATH, or is found by the cache: the variable
# comes before both.
fault_ld_library_path_shadow_nvjitlink() {
  other_release libnvJitLink.so.13 "$1.older" __nvJitLinkCreate_12_9 __nvJitLinkAddData_12_9
  PREPARE="LD_LIBRARY_PATH=$1.older" IMPORT='import torch'
  MAY_WORK="this torch finds its wheel's nvJitLink before the variable is asked"
  ERROR='undefined symbol: __nvJitLink[A-Za-z]*_13_[0-9]+, version libnvJitLink.so.13' ROOT=ld_library_path_shadow
}

# The folder stands behind a harmless one, and the good module behind torch fails with it.
fault_ld_library_path_shadow_behind_another() {
  link_good "$(module_file "$1")" "$1"
  other_release libnvJitLink.so.13 "$1.older" __nvJitLinkCreate_12_9
  mkdir -p "$1.harmless"
  PREPARE="LD_LIBRARY_PATH=$1.harmless:$1.older/"
  MAY_WORK="this torch finds its wheel's nvJitLink before the variable is asked"
  ERROR='undefined symbol: __nvJitLink' ROOT=ld_library_path_shadow
}

# No RPATH of torch's leads to libstdc++, so the variable decides about it.
fault_ld_library_path_shadow_libstdcxx() {
  mkdir -p "$1.older"
  echo 'int nothing_of_it(void) { return 0; }' >"$1.older/other.c"
  printf 'GLIBCXX_3.4 { global: *; };\nCXXABI_1.3 { };\n' >"$1.older/other.map"
  gcc -shared -fPIC "$1.older/other.c" -Wl,-soname,libstdc++.so.6 -Wl,--version-script,"$1.older/other.map" \
    -o "$1.older/libstdc++.so.6"
  PREPARE="LD_LIBRARY_PATH=$1.older" IMPORT='import torch'
  ERROR="libstdc\+\+.so.6: version .* not found" ROOT=ld_library_path_shadow LOG=libstdcxx_too_old
}

# An older NCCL wheel in torch's own site folder, where torch's DT_RPATH finds it before all else.
fault_cuda_wheels_mismatch_nccl() {
  local wheels=$SCANKIT_CACHE/wheels
  fx_download "$wheels" nvidia-nccl-cu13==2.27.7
  "$(fx_torch_env)/bin/python" -m pip --disable-pip-version-check -q --python "$1/bin/python" install --no-deps --no-index \
    --find-links "$wheels" nvidia-nccl-cu13==2.27.7
  # A log does not tell which of the two ways brought the other library.
  IMPORT='import torch' ERROR='undefined symbol: nccl' ROOT=cuda_wheels_mismatch LOG=ld_library_path_shadow
}

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# gpus.sh CASE SCANKIT WORK: modules with device code that the real nvcc made, judged for GPUs and drivers that are not here.
# The environment has no torch, so that nothing but the module decides.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=ci/fixtures.sh
. "$here/../../../ci/fixtures.sh"
# shellcheck source=doctor/tests/e2e/expect.sh
. "$here/expect.sh"
name=$1 scankit=$2 work=$3/gpus_$1
command -v nvcc >/dev/null || { echo "SKIP: no nvcc here"; exit 77; }
rm -rf "$work" && mkdir -p "$work"
cd "$work"
ROOT='' FOUND='' VERDICT=healthy STATUS=0
python=$(fx_python)
"$python" -m venv --without-pip env
env=$work/env
include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
h200=$here/../machines/h200_torch211/snapshot.json

module() { # NVCC-FLAG...: selective_scan_cuda.abi3.so with a kernel, which needs no libcudart
  cp "$here/module/plain.c" module.cu
  sed -i 's/^static struct PyModuleDef/__global__ void scale(float* a) { a[0] *= 2; }\nvoid go(float* a) { scale<<<1, 1>>>(a); }\n&/' module.cu
  nvcc -shared -Xcompiler -fPIC -cudart static -I"$include" -o selective_scan_cuda.abi3.so module.cu "$@" >nvcc.log 2>&1 ||
    expect_fail "nvcc: $(tail -3 nvcc.log)"
}
judge() { # VERDICT ROOT DOCTOR-ARGUMENT...
  VERDICT=$1 ROOT=$2 STATUS=0
  [ "$VERDICT" = broken ] && STATUS=1
  [ "$VERDICT" = unknown ] && STATUS=4
  shift 2
  "$scankit" doctor --json --so selective_scan_cuda.abi3.so "$@" >doctor.json 2>doctor.err && code=0 || code=$?
  expect_report doctor.json "$code"
}
here_on() { # VERDICT ROOT GPU DRIVER
  judge "$1" "$2" --python "$env/bin/python" --gpu "$3" --driver "$4"
}

packed() { # LIBNVRTC ARCH: the module with that NVRTC's cubin in it, as a fatbin
  "$python" "$here/module/nvrtc_cubin.py" "$1" "$2" "$work/k.cubin"
  fatbinary --create=k.fatbin -64 "--image3=kind=elf,sm=${2#sm_},file=k.cubin"
  gcc -shared -fPIC -I"$include" -o plain.so "$here/module/plain.c"
  objcopy --add-section .nv_fatbin=k.fatbin plain.so selective_scan_cuda.abi3.so
}

case_machine_code_of_another_gpu() {
  module -gencode arch=compute_80,code=sm_80
  here_on broken no_kernel_image sm_90 580.65
  here_on healthy '' sm_80 580.65
  here_on healthy '' sm_86 580.65
  here_on broken no_kernel_image sm_80,sm_90 580.65
  here_on broken no_kernel_image sm_75 580.65
}
case_architecture_and_family() {
  module -gencode arch=compute_90a,code=sm_90a -gencode arch=compute_100f,code=sm_100f
  here_on healthy '' sm_90 580.65
  here_on healthy '' sm_100 580.65
  here_on healthy '' sm_103 580.65
  here_on broken no_kernel_image sm_120 580.65
  here_on broken no_kernel_image sm_110 580.65
}
case_ptx_newer_than_the_driver() {
  module -gencode arch=compute_75,code=compute_75 -compress-mode=none
  here_on healthy '' sm_90 580.65
  here_on healthy '' sm_120 590.48
  here_on broken ptx_toolchain sm_90 570.86
  here_on broken ptx_toolchain sm_90 535.104.05
}
case_ptx_of_one_architecture() {
  module -gencode arch=compute_90a,code=compute_90a
  here_on healthy '' sm_90 580.65
  here_on broken no_kernel_image sm_100 580.65
}
# RAPIDS and ollama met it: zstd images on R535 end as "device kernel image is invalid".
case_zstd_on_an_old_driver() {
  module -gencode arch=compute_90,code=sm_90 -compress-mode=size
  here_on broken no_kernel_image sm_90 535.104.05
  here_on broken no_kernel_image sm_90 545.23.08
  here_on healthy '' sm_90 580.65.06
}
# nvcc 13 writes all its cubins in the newer cubin ABI, packed or not.
case_cubins_of_cuda_13() {
  local mode
  for mode in none size; do
    module -gencode arch=compute_90,code=sm_90 -compress-mode=$mode
    here_on broken no_kernel_image sm_90 550.163.01
    here_on unknown '' sm_90 575.57.08
    here_on healthy '' sm_90 580.65.06
    cp selective_scan_cuda.abi3.so "$(fx_site "$env/bin/python")"
    "$scankit" snapshot --python "$env/bin/python" >snapshot.json 2>/dev/null
    jq -e '[.extensions.value[].images[].elf_abi] | length > 0 and all(. == 8)' snapshot.json >/dev/null ||
      expect_fail "nvcc 13 writes ABI 8: $(jq -c '.extensions.value[].images' snapshot.json)"
  done
  module -gencode arch=compute_100,code=sm_100
  here_on healthy '' sm_100 570.133.20
}
# NVRTC 12.9 writes the older one up to sm_90, and the newer one behind it.
case_cubins_of_nvrtc_12() {
  local library
  library=$(fx_nvrtc_12)
  packed "$library" sm_90
  here_on healthy '' sm_90 550.163.01
  here_on healthy '' sm_90 535.104.05
  packed "$library" sm_100
  here_on healthy '' sm_100 570.133.20
  here_on broken no_kernel_image sm_100 560.35.05
}
case_no_gpu_at_all() {
  module -gencode arch=compute_80,code=sm_80
  judge healthy '' --python "$env/bin/python" --gpu none
  judge broken no_kernel_image --python "$env/bin/python" --gpu sm_120
}
# nvcc -rdc leaves the device linker's input in the file, which nothing runs.
case_relocatable_code_does_not_run() {
  module -rdc=true -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=compute_90
  here_on healthy '' sm_80 580.65
}
case_on_a_recorded_machine() {
  module -gencode arch=compute_80,code=sm_80
  judge broken no_kernel_image --from "$h200"
  judge healthy '' --from "$h200" --gpu sm_80
  module -gencode arch=compute_90,code=sm_90
  judge healthy '' --from "$h200"
  judge broken driver_too_old --from "$h200" --driver 525.60
}

"case_$name"
echo "ok: $name"

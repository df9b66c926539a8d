#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fatbins.sh CASE LIST_IMAGES WORK: device images of what the real nvcc makes, read by us, by expectation and by cuobjdump
# (found, or fetched as a wheel by pip; where neither is, the expectation alone decides).
set -euo pipefail
# shellcheck source=ci/fixtures.sh
. "$(cd "$(dirname "$0")" && pwd)/../../../ci/fixtures.sh"
name=$1 list=$2 work=$3/fatbins_$1
command -v nvcc >/dev/null || { echo "SKIP: no nvcc here"; exit 77; }
rm -rf "$work" && mkdir -p "$work"
cd "$work"

fail() {
  echo "FAIL: $*" >&2
  exit 1
}
fx_make_cuobjdump() {
  mkdir -p "$1" && fx_download "$1" nvidia-cuda-cuobjdump && (cd "$1" && unzip -qo ./*.whl)
}
cuobjdump=$(command -v cuobjdump || true)
if [ -z "$cuobjdump" ] && folder=$(fx_once "$SCANKIT_CACHE/cuobjdump" fx_make_cuobjdump 2>/dev/null); then
  cuobjdump=$(find "$folder" -name cuobjdump -type f | head -1)
  chmod +x "$cuobjdump"
fi

kernel() { # NAME: a translation unit with one kernel
  printf '__global__ void %s(float* a) { a[threadIdx.x] *= 2.0f; }\nvoid go_%s(float* a) { %s<<<1, 32>>>(a); }\n' \
    "$1" "$1" "$1" >"$1.cu"
}
build() { # OUTPUT FLAG...
  local output=$1
  shift
  nvcc -shared -Xcompiler -fPIC -o "$output" "$@" >nvcc.log 2>&1 || fail "nvcc: $(tail -3 nvcc.log)"
}
images() { "$list" "$1" | sort -u; }
# The images are exactly these kinds, whatever their packing: "cubin sm_90a".
has_exactly() { # FILE KIND...
  local file=$1
  shift
  "$list" "$file" >seen.txt || fail "$file cannot be read: status $?"
  if grep -E 'UNREADABLE|CONTRADICTED|unknown' seen.txt; then fail "an image was not understood"; fi
  diff <(cut -d' ' -f1,2 seen.txt | sort -u) <(printf '%s\n' "$@" | sort -u) || fail "$file holds other images"
  against_cuobjdump "$file"
}
# cuobjdump names no family ("sm_100" for sm_100f), and lists LTO images nowhere.
against_cuobjdump() { # FILE
  [ -n "$cuobjdump" ] || return 0
  { "$cuobjdump" --list-elf "$1" 2>/dev/null; "$cuobjdump" --list-ptx "$1" 2>/dev/null; } |
    sed -nE 's/.*\.(sm_[0-9]+a?)f?\.(cubin|ptx)$/\2 \1/p' | sort >theirs.txt
  "$list" "$1" | grep -E '^(cubin|ptx) ' | cut -d' ' -f1,2 | sed 's/f$//' | sort >ours.txt
  diff ours.txt theirs.txt || fail "cuobjdump reads other images of $1"
}
packed_with() { # FILE KIND PACKING
  "$list" "$1" | grep "^$2 " | awk '{print $3}' | sort -u | grep -qx "$3" ||
    fail "$2 images of $1 should be packed with $3: $(images "$1")"
}

case_architectures() {
  kernel k
  build a.so k.cu -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90a,code=sm_90a \
    -gencode arch=compute_100f,code=sm_100f -gencode arch=compute_90,code=compute_90
  has_exactly a.so 'cubin sm_80' 'cubin sm_90a' 'cubin sm_100f' 'ptx sm_90'
}
case_ptx_only() {
  kernel k
  build a.so k.cu -gencode arch=compute_75,code=compute_75
  has_exactly a.so 'ptx sm_75'
  build b.so k.cu -gencode arch=compute_90a,code=compute_90a
  has_exactly b.so 'ptx sm_90a'
}
case_compress_modes() {
  kernel k
  local both=(-gencode "arch=compute_90,code=sm_90" -gencode "arch=compute_90,code=compute_90")
  build none.so k.cu "${both[@]}" -compress-mode=none
  packed_with none.so ptx none
  packed_with none.so cubin none
  build speed.so k.cu "${both[@]}" -compress-mode=speed
  packed_with speed.so ptx lz4
  build size.so k.cu "${both[@]}" -compress-mode=size
  packed_with size.so ptx zstd
  packed_with size.so cubin zstd
  build balance.so k.cu "${both[@]}" -compress-mode=balance
  packed_with balance.so ptx zstd
  build raw.so k.cu "${both[@]}" -no-compress
  packed_with raw.so ptx none
  local file
  for file in none speed size balance raw; do has_exactly "$file.so" 'cubin sm_90' 'ptx sm_90'; done
}
case_several_units() {
  kernel one
  kernel two
  build a.so one.cu two.cu -gencode arch=compute_80,code=sm_80 -gencode arch=compute_86,code=sm_86
  has_exactly a.so 'cubin sm_80' 'cubin sm_86'
}
# What a kernel takes, against cuobjdump's own figures: shared memory, a bound on the threads, a stack, many registers.
case_resources() {
  cat >k.cu <<'CU'
__global__ void plain(float* a) { a[threadIdx.x] *= 2.0f; }
__global__ void __launch_bounds__(128) shared_and_bounded(float* a) {
  __shared__ float row[300];
  row[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  a[threadIdx.x] = row[299 - threadIdx.x];
}
__global__ void stacked(float* a, int n) {
  volatile float kept[200];
  for (int i = 0; i < 200; ++i) kept[i] = a[i];
  a[n] = kept[n] + kept[threadIdx.x % 200];
}
__device__ __noinline__ float called(float x) { return x * x + 1.0f; }
__global__ void calls(float* a) { a[0] = called(a[1]); }
CU
  build a.so k.cu -gencode arch=compute_75,code=sm_75 -gencode arch=compute_90,code=sm_90 \
    -gencode arch=compute_100,code=sm_100 -gencode arch=compute_120,code=sm_120
  "$list" --kernels a.so | sort >ours.txt
  [ "$(wc -l <ours.txt)" = 16 ] || fail "there are 4 kernels for each of 4 architectures: $(cat ours.txt)"
  [ "$(grep -c 'shared_and_bounded.* 128 threads$' ours.txt)" = 4 ] || fail "a bound of the threads: $(cat ours.txt)"
  [ "$(grep -c 'plain.* 0 threads$' ours.txt)" = 4 ] || fail "no bound: $(cat ours.txt)"
  [ "$(grep -c 'stacked.* STACK:800 ' ours.txt)" = 4 ] || fail "a stack of 800 bytes: $(cat ours.txt)"
  [ -n "$cuobjdump" ] || return 0
  "$cuobjdump" -res-usage a.so 2>/dev/null | awk '/^arch = /{arch = $3} /Function/{name = $2; sub(/:$/, "", name)}
    / REG:/{print arch, name, $1, $2, $3}' | grep -v called | sort >theirs.txt
  diff <(cut -d' ' -f1-5 ours.txt) theirs.txt || fail "cuobjdump -res-usage says something else"
}
case_relocatable() {
  kernel one
  kernel two
  build a.so one.cu two.cu -rdc=true -gencode arch=compute_80,code=sm_80
  has_exactly a.so 'cubin sm_80'
}
case_stripped() {
  kernel k
  build a.so k.cu -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=compute_90
  "$list" a.so >before.txt
  strip -s a.so
  diff before.txt <("$list" a.so) || fail "strip changed what is seen"
  has_exactly a.so 'cubin sm_80' 'ptx sm_90'
}
case_patched() {
  command -v patchelf >/dev/null || exit 77
  kernel k
  build a.so k.cu -gencode arch=compute_80,code=sm_80
  "$list" a.so >before.txt
  # shellcheck disable=SC2016
  patchelf --set-rpath '$ORIGIN/../a/long/folder/name/that/needs/a/segment/of/its/own' a.so
  diff before.txt <("$list" a.so) || fail "patchelf changed what is seen"
}
# Without section headers only the loaded segments are left (sstrip, some packers).
case_no_section_headers() {
  kernel k
  build a.so k.cu -gencode arch=compute_80,code=sm_80 -compress-mode=size
  "$list" a.so | sort -u >before.txt
  python3 - a.so <<'PY'
import struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
struct.pack_into("<Q", data, 40, 0)
struct.pack_into("<HHH", data, 58, 0, 0, 0)
open(sys.argv[1], "wb").write(data)
PY
  diff before.txt <("$list" a.so | sort -u) || fail "without section headers other images are seen"
}
case_torch() {
  local lib
  lib=$(fx_site "$(fx_torch_env)/bin/python")/torch/lib
  local file
  for file in libtorch_cuda.so libtorch_cuda_linalg.so; do
    [ -e "$lib/$file" ] || exit 77
    if "$list" "$lib/$file" | grep -E 'UNREADABLE|CONTRADICTED|unknown' | head -3 | grep .; then fail "$file"; fi
    against_cuobjdump "$lib/$file"
    [ -s ours.txt ] || [ -z "$cuobjdump" ] || fail "$file: no image was read"
  done
}

"case_$name"
echo "ok: $name${cuobjdump:+, against cuobjdump}"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# How scankit build chooses a compiler, by the finished program:  toolchains_end_to_end.sh SCANKIT
# Nothing is downloaded: the wheels here are made on the spot. toolchain_wheels_end_to_end.sh takes the real ones.
set -euo pipefail
# shellcheck source=builder/tests/checks.sh
. "$(dirname "$0")/checks.sh"
scankit=$1
cache=$work/cache
build() { status_is "$1" "$scankit" build --module causal_conv1d_cuda --cache-dir "$cache" --out "$work/made/" "${@:2}"; }
nothing_fetched() { [ -z "$(ls -A "$cache/toolchains" 2>/dev/null)" ]; }

check "a kind that there is not is a usage error" build 2 --toolchain gcc
check "and the kinds are named" says "nvrtc-wheel"
check "so is a folder without a compiler" build 2 --toolchain "$work"
check "and what may be named is said" says "libnvrtc.so.N"

# sm_52 is beyond CUDA 13, so that only NVRTC 12.9 makes both.
status=0
"$scankit" build --list-toolchains --arch sm_52,sm_121 --cache-dir "$cache" >"$work/out" 2>"$work/err" || status=$?
if grep -q '^    selected' "$work/out"; then
  echo "note: a CUDA 12.9 NVRTC is here: consent is not looked at"
else
  check "without consent nothing is fetched" build 5 --arch sm_52,sm_121
  check "what would do is named" says "nvidia-cuda-nvrtc-cu12==12.9.86"
  check "and how to agree" says "--allow-download"
  check "and there is nothing in the cache" nothing_fetched
fi
check "the release is not fetched unasked either" build 5 --release
check "an architecture that nobody makes is no download" build 5 --arch sm_20 --allow-download
check "nothing was fetched for it" nothing_fetched

# A wheel of the right name and version that is not the pinned one: a mirror that was tampered with, or a wrong file.
python=$(command -v python3)
if "$python" -m pip --version >/dev/null 2>&1; then
  mkdir "$work/index"
  "$python" - "$work/index" <<'PROGRAM'
import sys, zipfile
name = 'nvidia_cuda_nvrtc_cu12-12.9.86'
with zipfile.ZipFile(f'{sys.argv[1]}/{name}-py3-none-any.whl', 'w') as wheel:
    wheel.writestr('nvidia/cuda_nvrtc/lib/libnvrtc.so.12', b'not a library')
    wheel.writestr(f'{name}.dist-info/METADATA', 'Metadata-Version: 2.1\nName: nvidia-cuda-nvrtc-cu12\nVersion: 12.9.86\n')
    wheel.writestr(f'{name}.dist-info/WHEEL', 'Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n')
    wheel.writestr(f'{name}.dist-info/RECORD', '')
PROGRAM
  export PIP_NO_INDEX=1 PIP_FIND_LINKS=$work/index
  check "a wheel with another hash is refused" build 5 --python "$python" --toolchain nvrtc-wheel --arch sm_60
  check "by the installer, which says why" says "HASHES"
  check "with the command that was run" says "--require-hashes"
  check "and leaves nothing" nothing_fetched
  PIP_FIND_LINKS=$work/none
  check "offline it says what could not be fetched" build 5 --python "$python" --toolchain nvrtc-wheel --arch sm_60
  check "with the wheel's name" says "nvidia-cuda-nvrtc-cu12==12.9.86 could not be downloaded"
  check "and leaves nothing then" nothing_fetched
  unset PIP_NO_INDEX PIP_FIND_LINKS
fi

status=0
"$scankit" build --list-toolchains --toolchain nvcc --arch sm_90 --cache-dir "$cache" >"$work/out" 2>"$work/err" || status=$?
if [ "$status" = 0 ]; then
  check "an nvcc is listed with its host compiler" says "host compiler: gcc up to"
  check "and taken where it is asked for" says "selected: builds sm_90"
  nvcc=$(sed -n 's/^nvcc [0-9.]*: //p' "$work/out" | head -1)
  mkdir "$work/path"
  printf '#!/bin/sh\necho 99.1.0\n' >"$work/path/g++"
  chmod +x "$work/path/g++"
  out_of_range() { PATH=$work/path build 5 --toolchain "$nvcc" --arch sm_90; }
  check "a host compiler out of its range stops before the build" out_of_range
  check "with the range and what is here" says "but found gcc 99.1.0"
  check "and the way out" says "NVRTC needs no compiler"
  rm "$work/path/g++"
  check "so does none at all" out_of_range
  check "with the same way out" says "NVRTC needs no compiler"
  mkdir -p "$work/toolkit/bin"
  cp "$nvcc" "$work/toolkit/bin/nvcc"
  check "an nvcc without its parts says which" build 5 --toolchain "$work/toolkit" --arch sm_90
  check "by name" says "cudafe++ is missing"
else
  echo "note: no nvcc that can be used here: not looked at"
fi
end

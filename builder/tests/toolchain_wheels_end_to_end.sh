#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Compilers that come as wheels, the real ones:  toolchain_wheels_end_to_end.sh SCANKIT
# pip and uv fetch 12.9's NVRTC, the CUDA 13 compiler wheels make an nvcc, an old NVRTC 11.7 is used as it comes, and the
# release module of the convolution is made of four compilers. 450 MB of downloads; skipped where the index is out of reach.
set -euo pipefail
# shellcheck source=builder/tests/checks.sh
. "$(dirname "$0")/checks.sh"
scankit=$1
cache=$work/cache
python3 -m venv "$work/pip"
python=$work/pip/bin/python
pip() { "$python" -m pip --disable-pip-version-check -q "$@"; }
pip download --no-deps -d "$work/uv-wheel" uv 2>/dev/null || { echo "SKIPPED: the index is out of reach"; exit 77; }
build() { status_is "$1" "$scankit" build --module causal_conv1d_cuda --cache-dir "$cache" --out "$work/made/" "${@:2}"; }
offline() { PIP_NO_INDEX=1 PIP_FIND_LINKS=/none UV_OFFLINE=1 "$@"; }
module=$work/made/causal_conv1d_cuda.abi3.so
cubins() { "$scankit" build --show-manifest "$module" | grep -c '"kind": "cubin"'; }

check "pip fetches 12.9's NVRTC" build 0 --python "$python" --arch sm_60 --toolchain nvrtc-wheel
check "says how far it is" says "fetching nvrtc-12.9.86"
check "and it compiles for sm_60" test "$(cubins)" = 4
cp "$module" "$work/first.so"
rm -rf "$cache/objects" "$cache/last"
check "offline the fetched one is used again" offline build 0 --python "$python" --arch sm_60 --toolchain nvrtc-wheel
check "for the same bytes" cmp "$module" "$work/first.so"
library=$cache/toolchains/nvrtc-12.9.86/nvidia/cuda_nvrtc/lib/libnvrtc.so.12
printf x | dd of="$library" bs=1 seek=5000000 conv=notrunc 2>/dev/null
check "a damaged one is not used" offline build 5 --python "$python" --arch sm_60 --toolchain nvrtc-wheel
check "but fetched again" build 0 --python "$python" --arch sm_60 --toolchain nvrtc-wheel
check "with the right bytes" cmp "$module" "$work/first.so"
rm -rf "$cache/toolchains"

# Two at once, and one that is killed in the middle.
"$scankit" build --module causal_conv1d_cuda --arch sm_60 --toolchain nvrtc-wheel --python "$python" --cache-dir "$cache" \
  --out "$work/other/" >"$work/other.log" 2>&1 &
other=$!
until [ -n "$(ls -A "$cache"/toolchains/.fetch-*/tmp 2>/dev/null)" ] || ! kill -0 "$other" 2>/dev/null; do sleep 0.05; done
# A clock that jumps: the folder of the running fetch is as old as what two killed ones left.
mkdir "$cache/toolchains/.fetch-killed" "$cache/toolchains/.fetch-of-the-future"
touch -d 2001-01-01 "$cache"/toolchains/.fetch-*
touch -d 2099-01-01 "$cache/toolchains/.fetch-of-the-future"
check "two that fetch at once" build 0 --python "$python" --arch sm_60 --toolchain nvrtc-wheel
check "do not disturb each other" wait "$other"
check "and leave one tree" test "$(ls -A "$cache/toolchains")" = nvrtc-12.9.86
rm -rf "$cache/toolchains"
"$scankit" build --module causal_conv1d_cuda --arch sm_60 --toolchain nvrtc-wheel --python "$python" --cache-dir "$cache" \
  --out "$work/other/" >"$work/other.log" 2>&1 &
other=$!
until [ -n "$(ls -A "$cache"/toolchains/.fetch-*/tmp 2>/dev/null)" ] || ! kill -0 "$other" 2>/dev/null; do sleep 0.05; done
kill -9 "$other" 2>/dev/null || true
wait "$other" 2>/dev/null || true
check "a fetch that was killed leaves nothing to use" test ! -e "$cache/toolchains/nvrtc-12.9.86"
rm -rf "$cache/toolchains"

# An environment of uv's has no pip, and the wheel comes through uv.
"$python" -m zipfile -e "$work"/uv-wheel/uv-*.whl "$work/uv"
uv=$(find "$work/uv" -path '*/scripts/uv' | head -1)
chmod +x "$uv"
export UV_CACHE_DIR=$work/uv-cache
"$uv" venv -q --python "$python" "$work/uv-env"
with_uv() { PATH=$(dirname "$uv"):$PATH "$@"; }
check "uv fetches it for an environment of uv's" with_uv build 0 --python "$work/uv-env/bin/python" --arch sm_60 \
  --toolchain nvrtc-wheel
check "by its own command" says "uv pip install"
check "and the bytes are those of pip's" cmp "$module" "$work/first.so"

# fix, with a torch: the plan shows the command, and nothing is fetched before --yes.
if [ -x "${SCANKIT_TEST_PYTHON:-}" ] && "$SCANKIT_TEST_PYTHON" -c 'import torch' 2>/dev/null; then
  venv_beside "$SCANKIT_TEST_PYTHON" "$work/env"
  printf '<!DOCTYPE html>' >"$site/selective_scan_cuda$suffix"
  fix() { status_is "$1" "$scankit" fix --python "$work/env/bin/python" --arch sm_60 --cache-dir "$work/fix-cache" "${@:2}"; }
  check "a fix that needs a wheel shows it" fix 0 --dry-run
  check "with the command and the size" says "89 MB: "
  check "without --yes nothing is done" fix 1
  check "nor fetched" test ! -e "$work/fix-cache/toolchains"
  check "with --yes it repairs" fix 0 --yes
  check "with what it fetched" test -e "$work/fix-cache/toolchains/nvrtc-12.9.86"
fi

# nvcc from the wheels, in the cache and as a user may have them.
check "the wheels of nvcc are fetched" build 0 --python "$python" --arch sm_90,compute_75 --toolchain nvcc-wheel
cp "$module" "$work/nvcc.so"
check "and compile" test "$(cubins)" = 4
scratch=$cache/toolchains/nvcc-13.0.88/nvidia/cu13
check "by their path they make the same" build 0 --arch sm_90,compute_75 --toolchain "$scratch" --python "$python"
check "byte by byte" cmp "$module" "$work/nvcc.so"
if command -v nvcc >/dev/null && nvcc --version | grep -q V13.0.88; then
  "$scankit" build --show-manifest "$module" | sed '/"toolchain"/,/}/d' >"$work/wheels.json"
  check "the system's nvcc of that release" build 0 --arch sm_90,compute_75 --toolchain "$(command -v nvcc)" --python "$python"
  "$scankit" build --show-manifest "$module" | sed '/"toolchain"/,/}/d' >"$work/system.json"
  check "makes the same images" cmp "$work/wheels.json" "$work/system.json"
fi
mv "$scratch/include/crt" "$work/crt"
check "without nvidia-cuda-crt it says what is missing" build 5 --arch sm_90 --toolchain "$scratch" --python "$python"
check "by name, before it compiles" says "crt/host_config.h is missing"
mv "$work/crt" "$scratch/include/crt"

# An NVRTC of CUDA 11.7, as torch 1.13 and 2.0 bring it.
if pip install --target "$work/cu11" --no-deps nvidia-cuda-nvrtc-cu11==11.7.99 2>/dev/null; then
  check "an NVRTC 11.7 compiles too" build 0 --arch sm_60,sm_86 --toolchain "$work/cu11/nvidia/cuda_nvrtc/lib" --python "$python"
fi

begin=$(date +%s)
check "the release is made of four compilers" build 0 --arch release --allow-download --python "$python"
echo "note: $(($(date +%s) - begin)) s, $(stat -c %s "$module") bytes, $(cubins) cubins"
"$scankit" build --show-manifest "$module" >"$work/out"
check "which its manifest names" test "$(grep -c '"kind": "nvrtc"' "$work/out")" = 4
for sm in 60 61 70 75 80 86 89 90 100 103 107 120 121; do check "it holds sm_$sm" says "\"target\": \"sm_$sm\""; done
check "and PTX" says '"target": "compute_80"'
rm -rf "$cache/objects"
check "again, offline" offline build 0 --arch release --python "$python"
end

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scankit build, by the finished program:  build_end_to_end.sh SCANKIT
set -euo pipefail
# shellcheck source=builder/tests/checks.sh
. "$(dirname "$0")/checks.sh"
scankit=$1
units=$(grep -c "^UNIT(" "$(dirname "$0")/../../kernels/causal_conv1d/cuda/units.def")
build() { status_is "$1" "$scankit" build --module causal_conv1d_cuda "${@:2}"; }  # build EXPECTED_STATUS OPTION...

status=0
"$scankit" build --module causal_conv1d_cuda --arch compute_75 --cache-dir "$work/cache" --out "$work/first/" >"$work/out" 2>"$work/err" || status=$?
if [ "$status" = 5 ] && grep -q 'NVRTC (libnvrtc.so.12 or .13) not found' "$work/err"; then
  check "without an NVRTC it says how to bring one" says "pip install nvidia-cuda-nvrtc"
  echo "SKIPPED: no NVRTC on this machine"
  exit 77
fi
check "the first build succeeds" test "$status" = 0
module=$work/first/causal_conv1d_cuda.abi3.so

check "the second one too" build 0 --arch compute_75 --cache-dir "$work/cache" --out "$work/second/"
check "all of it from the cache" says "are in the cache"
check "with the same bytes" cmp "$module" "$work/second/causal_conv1d_cuda.abi3.so"
mkdir "$work/elsewhere" "$work/tmp"
check "a third from scratch" env -C "$work/elsewhere" TMPDIR="$work/tmp" TZ=Asia/Tokyo LC_ALL=C \
  "$scankit" build --module causal_conv1d_cuda --arch compute_75 --cache-dir "$work/cache2" -j 1 --out "$work/third/"
# NVRTC's output depends on addresses, which the helper fixes where it may (helpers/gpu/main.cc).
same() {
  if setarch -R true 2>/dev/null; then check "$@"; else echo "note: addresses cannot be fixed here: not checked: $1"; fi
}
same "elsewhere gives the same bytes" cmp "$module" "$work/third/causal_conv1d_cuda.abi3.so"
same "and the same manifest beside it" cmp "$module.json" "$work/third/causal_conv1d_cuda.abi3.so.json"

find "$work/cache/objects" -type f | while read -r entry; do printf x >>"$entry"; done
check "a damaged cache is no danger" build 0 --arch compute_75 --cache-dir "$work/cache" --out "$work/fourth/"
check "it is built again" says "0 of $units"
same "with the same bytes after damage" cmp "$module" "$work/fourth/causal_conv1d_cuda.abi3.so"

check "the manifest inside" build 0 --show-manifest "$module"
check "is the one beside" cmp "$work/out" "$module.json"
check "the key is explained" build 0 --arch compute_75 --cache-dir "$work/cache" --out "$work/fifth/" --explain
check "label by label" says "target: compute_75"

machine=$(dirname "$0")/../../doctor/tests/machines/h200_torch211/snapshot.json
check "for the GPU of another machine" build 0 --list-toolchains --for "$machine" --cache-dir "$work/cache"
check "that is sm_90" says "selected: builds sm_90"
check "not with --arch beside it" build 2 --for "$machine" --arch sm_80
echo '{"schema": 1}' >"$work/none.json"
check "a machine without a GPU is told so" build 2 --for "$work/none.json"
check "with what to do" says "--arch sm_90"
check "the compilers are listed" build 0 --list-toolchains --arch compute_75 --cache-dir "$work/cache"
check "with what they make" says "builds: sm_"
check "and which one is taken" says "selected: builds compute_75"
check "one alone" test "$(grep -c '^    selected' "$work/out")" = 1
check "for what nobody makes none is chosen" build 5 --list-toolchains --arch sm_20 --cache-dir "$work/cache"
check "and each says why" test "$(grep -c '^    not selected' "$work/out")" = "$(grep -c '^[^ ]' "$work/out")"
check "no architecture is a usage error" build 2 --arch hopper
check "an old GPU is named" build 5 --arch sm_20 --cache-dir "$work/cache"
check "a file without manifest is one" build 2 --show-manifest "$scankit"
check "a folder that cannot be made fails" build 5 --arch compute_75 --cache-dir "$work/cache" --out /proc/none/m.so
end

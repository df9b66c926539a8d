#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# aarch64_doctor.sh SCANKIT CROSS WORK: a real aarch64 Python with a real torch, examined by the scankit for aarch64 of the
# build tree CROSS under qemu, which imports the module and computes with it, and from outside by SCANKIT of this machine.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
own=$1 cross=$2
# shellcheck source=ci/fixtures.sh
. "$here/../fixtures.sh"
# shellcheck source=ci/fixture_arm64.sh
. "$here/../fixture_arm64.sh"
mkdir -p "$3"
work=$(cd "$3" && pwd)
root=$work/root failures=0
trap 'rm -rf "$root"' EXIT
[ -x "$cross/scankit" ] || { echo "SKIPPED: $cross has no scankit: release.arm64 makes it" && exit 77; }
torch=$(fx_arm64_torch) || { echo "SKIPPED: no aarch64 environment with torch could be made" && exit 77; }
why=$(fx_arm64_runs "$torch") || { echo "SKIPPED: $why" && exit 77; }
rm -rf "$root"
cp -a --reflink=auto "$torch" "$root"
cp "$cross/scankit" "$root/usr/bin/"
site=$(echo "$root"/env/lib/python3.*/site-packages)
cp "$cross/modules/selective_scan_cuda.abi3.so" "$site/"

# ends STATUS "TEXT|TEXT" COMMAND...: with that status, having said each of the texts.
ends() {
  local status=0 text texts
  "${@:3}" >"$work/said.txt" 2>&1 </dev/null || status=$?
  IFS='|' read -r -a texts <<<"$2"
  for text in "${texts[@]}"; do
    grep -qF -- "$text" "$work/said.txt" && continue
    echo "FAILED: did not say '$text': ${*:3}" && cat "$work/said.txt"
    failures=$((failures + 1))
  done
  [ "$status" -eq "$1" ] && return 0
  echo "FAILED: ended with $status, not $1: ${*:3}" && cat "$work/said.txt"
  failures=$((failures + 1))
}
inside() { fx_arm64 "$root" "$@"; }

healthy="torch   $FX_ARM64_TORCH+cpu, CPU build|undefined symbols resolved)|the environment is healthy"
ends 0 "$healthy|import torch: ok|import selective_scan_cuda: ok" inside /usr/bin/scankit doctor --python /env/bin/python --timeout 600
ends 0 "$healthy|in the unpacked root" "$own" doctor --root "$root" --python /env/bin/python

# What the module computes, with NEON: the recurrence of ten steps, written out.
cp "$here/aarch64_module.py" "$root/tmp/"
ends 0 "neon|right" inside /env/bin/python /tmp/aarch64_module.py

# A module of the other processor, on either side, read from a file and in its place.
cp "$(dirname "$own")/modules/causal_conv1d_cuda.abi3.so" "$root/tmp/"
ends 1 "wrong_machine_arch|the file is built for x86_64, but this Python runs on aarch64" \
  inside /usr/bin/scankit doctor --python /env/bin/python --no-import --so /tmp/causal_conv1d_cuda.abi3.so
ends 1 "wrong_machine_arch|the file is built for aarch64, but this Python runs on x86_64" \
  "$own" doctor --python "$(fx_torch_env)/bin/python" --no-import --so "$cross/modules/causal_conv1d_cuda.abi3.so"
ends 0 "the environment is healthy" inside /usr/bin/scankit doctor --python /env/bin/python --no-import --so /env/lib/"$(basename "$(dirname "$site")")"/site-packages/selective_scan_cuda.abi3.so
cp "$(dirname "$own")/modules/selective_scan_cuda.abi3.so" "$site/"
ends 1 "wrong_machine_arch|scankit fix" inside /usr/bin/scankit doctor --python /env/bin/python --no-import
[ $failures -eq 0 ] || exit 1
echo "a real aarch64 torch $FX_ARM64_TORCH: examined on both sides, and the module is right"

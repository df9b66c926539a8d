#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fix by the modules that lie beside scankit, as its wheel puts them:  fix_prebuilt.sh SCANKIT PYTHON_WITH_TORCH
# What a compile would need is not there: PATH is empty, the cache cannot be written.
set -euo pipefail
# shellcheck source=builder/tests/checks.sh
. "$(dirname "$0")/checks.sh"
python=${SCANKIT_TEST_PYTHON:-$2}
skip_without_torch "$python"
unset VIRTUAL_ENV PYTHONPATH
mkdir -p "$work/wheel/bin" "$work/wheel/share/scankit/modules" "$work/empty"
modules=$work/wheel/share/scankit/modules
scankit=$work/wheel/bin/scankit
cp "$1" "$scankit"
status_is 0 "$scankit" build --python "$python" --arch sm_75,compute_75 --module causal_conv1d_cuda --out "$modules/" || {
  grep -q 'NVRTC (libnvrtc.so.12 or .13) not found' "$work/err" && echo "SKIPPED: no NVRTC on this machine" && exit 77
  exit 1
}
ln -s "$scankit" "$work/link"
env=$work/env
venv_beside "$python" "$env"
stale=$site/causal_conv1d_cuda$suffix
printf '<!DOCTYPE html><html>not found</html>' >"$stale"
old=$(state)
fix() { # fix EXPECTED_STATUS OPTION...
  status_is "$1" /usr/bin/env -i HOME="$work" PATH="$work/empty" LC_ALL=C.UTF-8 "$work/link" fix --python "$env/bin/python" \
    --module causal_conv1d_cuda --cache-dir /proc/none "${@:2}"
}

check "the plan names it" fix 0 --dry-run
check "and its architectures" says "install  causal_conv1d_cuda.abi3.so for sm_75 compute_75 (bundled, built by nvrtc "
check "for a GPU that it has no code for it is no answer" fix 0 --dry-run --arch sm_90
check "and a build is" says "build    causal_conv1d_cuda.abi3.so for sm_90"
check "fix installs it" fix 0 --yes
check "the very bytes" cmp "$modules/causal_conv1d_cuda.abi3.so" "$site/causal_conv1d_cuda.abi3.so"
check "it imports" "$env/bin/python" -c 'import torch, causal_conv1d_cuda as m; info = m.scankit_info(); assert len(info["images"]) == 2 * 4 and not info["images_problem"], info'
check "restore takes it back" status_is 0 "$scankit" restore --python "$env/bin/python"
check "byte by byte" test "$(state)" = "$old"

# One byte of one image: what is wrong is told, and a build repairs instead.
size=$(stat -c %s "$modules/causal_conv1d_cuda.abi3.so")
printf 'X' | dd of="$modules/causal_conv1d_cuda.abi3.so" bs=1 seek=$((size / 2)) conv=notrunc status=none
check "a damaged one is passed over" fix 0 --dry-run
check "and told" says "which is bundled with scankit, is damaged:"
check "with a build in its place" says "build    causal_conv1d_cuda.abi3.so"
end

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cpu_torch.sh SCANKIT WORK: `fix` beside a real torch of the CPU alone (Debian's), without a network, a compiler or a cache: it
# installs modules that compute on the CPU, compiles and downloads nothing, and takes them back. Needs root and debootstrap.
set -euo pipefail
scankit=$(readlink -f "$1")
# shellcheck source=ci/fixtures.sh
. "$(dirname "$0")/../../ci/fixtures.sh"
# shellcheck source=ci/fixture_roots.sh
. "$(dirname "$0")/../../ci/fixture_roots.sh"
why=$(fx_inside_runs) || { echo "SKIPPED: $why" && exit 77; }
# In a mount namespace of our own: what is mounted ends with us.
[ "${CPU_TORCH_INSIDE:-}" ] || exec env CPU_TORCH_INSIDE=1 unshare --mount --propagation private bash "$0" "$@"
base=$(fx_cpu_torch_root) || { echo "SKIPPED: no root with Debian's torch could be made" && exit 77; }
rm -rf --one-file-system "$2" && mkdir -p "$2/root" "$2/changes" "$2/spare"
work=$(cd "$2" && pwd) root=$(cd "$2" && pwd)/root
trap 'umount -R "$root" 2>/dev/null || true; rm -rf --one-file-system "$work"' EXIT
mount -t overlay -o "lowerdir=$base,upperdir=$work/changes,workdir=$work/spare" overlay "$root"
cp "$scankit" "$root/usr/bin/scankit"
fail() {
  printf 'FAILED: %s\n' "$*" && cat "$work/said.txt"
  exit 1
}
# expect STATUS PATTERN COMMAND...: inside, without any network; it ends with that status and says that.
expect() {
  local status=0
  fx_inside "$root" unshare --net "${@:3}" >"$work/said.txt" 2>&1 </dev/null || status=$?
  [ "$status" -eq "$1" ] || fail "${*:3}: status $status, not $1"
  grep -qF -- "$2" "$work/said.txt" || fail "${*:3}: it does not say \"$2\""
}
python=/env/bin/python here=(--python /env/bin/python)
site=$(echo "$root"/env/lib/python3.*/site-packages)
printf '<html>not found</html>' >"$site/selective_scan_cuda.abi3.so"
expect 1 corrupt_binary scankit doctor "${here[@]}"
expect 0 'selective_scan_cuda.abi3.so, without device code: it computes on the CPU' scankit fix "${here[@]}" --dry-run
grep -qE 'torch 2[^ ]* has no CUDA, so no device code is needed' "$work/said.txt" || fail "it does not say why"
! grep -qE 'fetch|MB|NVRTC|--allow-download' "$work/said.txt" || fail "the plan speaks of a compiler"
expect 0 'without device code: it computes on the CPU' scankit fix "${here[@]}" --yes --module causal_conv1d_cuda
expect 0 'without device code: it computes on the CPU' scankit fix "${here[@]}" --yes
expect 0 'the environment is healthy' scankit doctor "${here[@]}"
expect 0 'ok' $python -c '
import torch, selective_scan_cuda, causal_conv1d_cuda
for module in selective_scan_cuda, causal_conv1d_cuda:
    info = module.scankit_info()
    assert info["images"] == [] and not info.get("images_problem"), info
print("ok")'
expect 0 PASSED scankit validate "${here[@]}" --quick --module causal_conv1d_cuda
expect 0 'import selective_scan_cuda` works, from' scankit fix "${here[@]}" --yes
made=$(find "$root/root/.cache/scankit" -name toolchains -o -name objects 2>/dev/null || true)
[ -z "$made" ] || fail "something was compiled or downloaded: $made"
# Device code that somebody asks for is not to be had here, and nothing is changed.
rm "$site/causal_conv1d_cuda.abi3.so"
expect 5 'nothing was changed' scankit fix "${here[@]}" --yes --arch sm_90 --module causal_conv1d_cuda

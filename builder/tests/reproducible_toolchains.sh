#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# scankit build --check-reproducible of the whole scan, by each kind of compiler: reproducible_toolchains.sh SCANKIT PYTHON_WITH_TORCH KIND
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=ci/fixtures.sh
. "$here/../../ci/fixtures.sh"
# shellcheck source=builder/tests/checks.sh
. "$here/checks.sh"
scankit=$1 python=${SCANKIT_TEST_PYTHON:-$2} kind=$3
setarch -R true 2>/dev/null || { echo "SKIPPED: addresses cannot be fixed here, and NVRTC's output depends on them" && exit 77; }
twice() {
  check "$kind: two builds are the same" status_is 0 "$scankit" build --check-reproducible --arch sm_90 --cache-dir "$work/cache" --out "$work/made/" "$@"
  check "$kind: it says so" says "reproducible: two builds gave the same"
  cat "$work/out"
}
case $kind in
  nvrtc_12)
    library=$(fx_nvrtc_12) || exit 77
    twice --toolchain "$library"
    ;;
  nvcc)
    "$scankit" build --list-toolchains 2>/dev/null | grep -q '^nvcc [0-9.]*: /' || { echo "SKIPPED: no nvcc here" && exit 77; }
    twice --toolchain nvcc
    ;;
  torch_flavor)
    skip_without_torch "$python"
    twice --flavor torch --python "$python"
    ;;
  *) echo "no such kind: $kind" >&2 && exit 2 ;;
esac
end

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# cpu.sh [SCANKIT] [--build]: what a static diagnosis costs next to what users run today, in one run on one machine:
# wall time (median, page cache warm) and peak memory, with ratios; then the CPU kernels next to the plain PyTorch
# recurrence, and what device code for one GPU costs (build.sh). --build also times a clean build, without ccache.
set -euo pipefail
cd "$(dirname "$0")/../../.."
# shellcheck source=ci/fixtures.sh
. ci/fixtures.sh
scankit='' build=no
for argument; do
  case $argument in
    --build) build=yes ;;
    *) scankit=$(realpath "$argument") ;;
  esac
done
: "${scankit:=$PWD/build/ci/scankit}"
[ -x "$scankit" ] || { echo "bench: no scankit at $scankit; build it, or name it" >&2; exit 2; }
[ -x /usr/bin/time ] || { echo "bench: needs the package 'time'" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
env=$(fx_scratch_env "$work/env" plain)
echo "machine: $(nproc) x $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), load $(cut -d' ' -f1 /proc/loadavg)"

# measure RUNS COMMAND...: sets ms (median wall) and mib (largest peak).
measure() {
  local runs=$1 start
  shift
  "$@" >/dev/null 2>&1 || true # warms the page cache
  : >"$work/ms" && : >"$work/kib"
  for _ in $(seq "$runs"); do
    start=${EPOCHREALTIME/./}
    /usr/bin/time -o "$work/time" -f %M "$@" >/dev/null 2>&1 || true
    echo $(((${EPOCHREALTIME/./} - start) / 10)) >>"$work/ms"
    tail -n 1 "$work/time" >>"$work/kib"
  done
  ms=$(sort -n "$work/ms" | awk '{v[NR]=$1} END {printf "%.1f", v[int((NR + 1) / 2)] / 100}')
  mib=$(sort -n "$work/kib" | awk 'END {printf "%.1f", $1 / 1024}')
}
row() {
  awk -v name="$1" -v ms="$ms" -v mib="$mib" -v ms0="$base_ms" -v mib0="$base_mib" \
    'BEGIN {printf "%-44s %10.1f %9.1f %9.1fx %9.1fx\n", name, ms, mib, ms / ms0, mib / mib0}'
}

printf '%-44s %10s %9s %10s %10s\n' "command (page cache warm, median)" "wall ms" "peak MiB" "time" "memory"
measure 11 "$scankit" doctor --no-import --python "$env/bin/python"
base_ms=$ms base_mib=$mib
row "scankit doctor --no-import"
measure 3 "$scankit" doctor --python "$env/bin/python"
row "scankit doctor (imports in children)"
measure 3 "$env/bin/python" -c 'import torch'
row "python -c 'import torch'"
measure 3 "$env/bin/python" -m torch.utils.collect_env
row "python -m torch.utils.collect_env"

# Every extension of an environment with some 480 of them, where doctor/tests/e2e/test_audit_truth.py made one.
many=${SCANKIT_AUDIT_ENV:-$SCANKIT_CACHE/envs/many}
if [ -x "$many/bin/python" ]; then
  measure 5 "$scankit" doctor --all --no-import --python "$many/bin/python"
  row "scankit doctor --all, $("$scankit" doctor --all --no-import --json --python "$many/bin/python" 2>/dev/null | jq '.audit | length') extensions"
fi

modules=$(dirname "$scankit")/modules
if [ -e "$modules/selective_scan_cuda.abi3.so" ]; then
  echo
  PYTHONPATH=$modules "$env/bin/python" kernels/selective_scan/bench_cpu.py
fi

if "$scankit" build --list-toolchains --cache-dir "$work/listed" >/dev/null 2>&1; then
  echo
  ci/scripts/bench/build.sh "$scankit"
fi

if [ $build = yes ]; then
  start=$SECONDS
  export CCACHE_DISABLE=1
  cmake -S . -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DSCANKIT_TESTS=OFF >/dev/null
  cmake --build "$work/build" >/dev/null
  echo "clean build of scankit, no ccache: $((SECONDS - start)) s"
  start=$SECONDS
  cmake -S . -B "$work/build" -DSCANKIT_TESTS=ON >/dev/null
  cmake --build "$work/build" >/dev/null
  echo "and its tests: $((SECONDS - start)) s more"
fi

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# build.sh [SCANKIT] [OPTION...]: what `scankit build` costs for one architecture (sm_90, or the --arch among the
# options, which all go to `build`): with an empty cache and from the cache, wall and CPU seconds of the whole process
# tree, its peak memory (the sum over its processes, each 0.1 s), the size of the module and of its device code. CPU
# seconds are the figure on a machine that others use; wall time by two cores is at least half of them.
set -euo pipefail
cd "$(dirname "$0")/../../.."
scankit=$PWD/build/ci/scankit
if [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; then
  scankit=$(realpath "$1")
  shift
fi
[ -x "$scankit" ] || { echo "bench_build: no scankit at $scankit; build it, or name it" >&2; exit 2; }
[ -x /usr/bin/time ] || { echo "bench_build: needs the package 'time'" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
case " $* " in *" --arch"*) ;; *) set -- --arch sm_90 "$@" ;; esac
echo "machine: $(nproc) x $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), load $(cut -d' ' -f1 /proc/loadavg)"

# Sets tree_kib, the sum of the resident sets of PID and all below it; what processes share counts each time.
tree_kib=0
tree_memory() {
  local pid=$1 children child kib
  kib=$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$pid/status" 2>/dev/null) || true
  tree_kib=$((tree_kib + ${kib:-0}))
  children=$(cat /proc/"$pid"/task/*/children 2>/dev/null) || true
  for child in $children; do tree_memory "$child"; done
}

# measure LABEL OPTION...: one build; prints a row.
measure() {
  local label=$1 peak=0 watched
  shift
  /usr/bin/time -o "$work/time" -f '%e %U %S' "$scankit" build "$@" --cache-dir "$work/cache" --out "$work/out/" \
    >"$work/log" 2>&1 </dev/null &
  watched=$!
  while kill -0 "$watched" 2>/dev/null; do
    tree_kib=0
    tree_memory "$watched"
    [ "$tree_kib" -le "$peak" ] || peak=$tree_kib
    sleep 0.1
  done
  wait "$watched" || { cat "$work/log" >&2; exit 1; }
  awk -v label="$label" -v peak="$peak" \
    '{printf "%-28s %8.2f %8.2f %10.0f\n", label, $1, $2 + $3, peak / 1024}' "$work/time"
}

printf '%-28s %8s %8s %10s\n' "build $*" "wall s" "CPU s" "peak MiB"
measure "empty cache" "$@"
for run in 1 2 3; do measure "from the cache, run $run" "$@"; done
module=$(find "$work/out" -name '*.so')
images=$("$scankit" build --show-manifest "$module" | awk '/^ *"size": / {sum += $2} END {print sum}')
echo "module $(stat -c %s "$module") bytes, device code $images"

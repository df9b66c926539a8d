#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# profile.sh --modules DIR [--python P] [--keep DIR] [--ncu FILE]
# What limits the kernels: NVIDIA's ncu on one training step of each of the six shapes, as a short table (times, clock, pipes,
# stalls, shared memory, occupancy). --modules: where selective_scan_cuda lies (scankit build --arch native --out DIR/).
# --keep DIR holds ncu's own report and the CSV. Clocks are left as they are. Exit status: 77 where torch sees no GPU, there is
# no ncu, or it may not read the counters.
set -uo pipefail
python=python3 keep='' modules='' ncu=''
while [ $# -gt 0 ]; do
  [ $# -gt 1 ] || { echo "profile.sh: no value for $1" >&2; exit 2; }
  case "$1" in
    --python) python=$2 ;;
    --keep) keep=$2 ;;
    --modules) modules=$(readlink -f "$2") ;;
    --ncu) ncu=$2 ;;
    *) echo "profile.sh: unknown option $1 (known: --modules DIR, --python P, --keep DIR, --ncu FILE)" >&2; exit 2 ;;
  esac
  shift 2
done
[ -d "$modules" ] || { echo "profile.sh: --modules must be a directory" >&2; exit 2; }
for found in "$ncu" "$(command -v ncu)" /usr/local/cuda/bin/ncu /opt/nvidia/nsight-compute/*/ncu; do
  [ ! -x "$found" ] || { ncu=$found; break; }
done
[ -x "$ncu" ] || { echo "SKIPPED: no ncu on PATH, in /usr/local/cuda/bin or in /opt/nvidia/nsight-compute; --ncu names one"; exit 77; }
"$python" -c 'import torch, sys; sys.exit(0 if torch.cuda.is_available() else 77)' ||
  { rc=$?; [ $rc = 77 ] && echo "SKIPPED: torch finds no GPU"; exit $rc; }
work=${keep:-$(mktemp -d)}
mkdir -p "$work" || exit 3
work=$(readlink -f "$work")
[ -n "$keep" ] || trap 'rm -rf "$work"' EXIT
cd "$(dirname "$0")/../../figures" || exit 3
export PYTHONDONTWRITEBYTECODE=1
sections=()
for section in SpeedOfLight WarpStateStats SchedulerStats Occupancy LaunchStats ComputeWorkloadAnalysis MemoryWorkloadAnalysis \
  InstructionStats; do
  sections+=(--section "$section")
done
# A name that this ncu does not know ends it: then the sections alone.
more=$("$python" profile_table.py --metrics)
profiled() {
  "$ncu" --profile-from-start off --clock-control none --force-overwrite --export "$work/profile" "${sections[@]}" "$@" \
    "$python" profile_run.py "$modules" >"$work/ncu.txt" 2>&1
}
profiled --metrics "$more" || { grep -q 'ERR_NVGPUCTRPERM' "$work/ncu.txt" || profiled; } || true
if grep -q 'ERR_NVGPUCTRPERM' "$work/ncu.txt"; then
  echo "SKIPPED: ncu may not read the GPU's counters here (ERR_NVGPUCTRPERM): the driver's administrator allows that"
  exit 77
fi
"$ncu" --import "$work/profile.ncu-rep" --csv --page raw >"$work/profile.csv" 2>"$work/import.txt" ||
  { tail -n 20 "$work/ncu.txt" "$work/import.txt"; echo "profile.sh: ncu failed"; exit 1; }
"$python" profile_table.py "$work/profile.csv"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# slurm_cost.sh SCANKIT PYTHON WORK [TURNS]: what `scankit fleet run` costs beside `srun hostname` on four nodes of a real
# Slurm, in turns inside one allocation; medians.
set -euo pipefail
scankit=$1 python=$2 work=$3 turns=${4:-9}
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=ci/fleet/tests/slurm.sh
. "$here/slurm.sh"
if why=$(slurm_missing); then echo "SKIP: $why" && exit 77; fi
rm -rf "$work" && mkdir -p "$work"
trap slurm_down EXIT
slurm_up "$work/cluster" 4
cat >"$work/turns.sh" <<'TURNS'
for ((i = 1; i <= $4; i++)); do
  a=$(date +%s%N)
  srun -N4 -n4 hostname >/dev/null 2>&1
  b=$(date +%s%N)
  srun -N4 -n4 "$1" doctor --python "$2" --no-import --json >/dev/null 2>&1 || true
  c=$(date +%s%N)
  "$1" fleet run --slurm --out "$3/fleet$i" -- doctor --python "$2" --no-import >/dev/null 2>&1
  d=$(date +%s%N)
  echo "$(((b - a) / 1000000)) $(((c - b) / 1000000)) $(((d - c) / 1000000))"
done
TURNS
salloc -Q -N4 bash "$work/turns.sh" "$scankit" "$python" "$work" "$turns" >"$work/times"
column() { awk -v n="$1" '{print $n}' "$work/times" | sort -n | awk '{v[NR] = $1} END {print v[int((NR + 1) / 2)]}'; }
echo "4 nodes, median of $turns turns: srun hostname $(column 1) ms, srun scankit doctor $(column 2) ms, scankit fleet run -- doctor $(column 3) ms"

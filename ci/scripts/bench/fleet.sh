#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fleet.sh SCANKIT [NODES]: what merging the results of NODES nodes (1000) costs, made of one real result with
# varied facts and times; the report as text, HTML and JSON, median of 9, page cache warm. With $PYTHON and $MODULE (a file) the
# result is one of `validate` on that module, which is larger.
set -euo pipefail
scankit=$1 nodes=${2:-1000}
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
command=(doctor)
[ -z "${PYTHON:-}" ] || command=(validate --python "$PYTHON" --module "$MODULE" --device cpu --no-timing)
trap 'rm -rf "$work"' EXIT
"$scankit" fleet node --fleet f1 --out "$work/real" --node real --command-sha256 c1 --launched "$(date +%s.%3N)" -- \
  "${command[@]}" >"$work/lines"
python3 "$here/../../fleet/tests/make_fleet.py" "$work/real/real.json" "$work/fleet" "$nodes"
for ((i = 0; i < 9; i++)); do
  command time -f '%e %M' -o "$work/times" -a "$scankit" fleet report "$work/fleet" --report "html=$work/fleet.html" \
    --report "json=$work/fleet.json" >"$work/text" || true
done
grep -v '^Command' "$work/times" | sort -n | awk -v n="$nodes" -v size="$(du -sm "$work/fleet" | cut -f1)" \
  '{wall[NR] = $1; if ($2 > most) most = $2}
   END {printf "%d nodes, %d MiB of results: %.2f s median, %.1f MiB at most\n", n, size, wall[int((NR + 1) / 2)], most / 1024}'
tail -n 1 "$work/text"

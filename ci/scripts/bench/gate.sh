#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What `scankit ci run` adds to its parts, side by side in turns:  gate.sh SCANKIT PYTHON MODULE [ROUNDS]
# PYTHON has torch; MODULE is a selective_scan_cuda. Both sides run doctor, env check and validate of a few cases.
set -euo pipefail
# shellcheck source=ci/tests/checks.sh
. "$(dirname "$0")/../../../ci/tests/checks.sh"
scankit=$(realpath "$1") python=$(realpath -s "$2") module=$(realpath "$3") rounds=${4:-5}
export XDG_CACHE_HOME=$work/cache
unset VIRTUAL_ENV PYTHONPATH CONDA_PREFIX GITHUB_ACTIONS GITHUB_STEP_SUMMARY
venv_beside "$python" "$work/env"
cp "$module" "$site/selective_scan_cuda.abi3.so"
env=$work/env/bin/python
mkdir "$work/project" && cd "$work/project"
"$scankit" env init --python "$env" >/dev/null 2>&1
first=$("$scankit" validate --python "$env" --list-cases --seed 7 | sed -n '1s/.*"id": *"\([^"]*\)".*/\1/p')
printf 'schema: 1\nsteps:\n  validate: {args: [--seed, "7", --device, cpu, --no-timing, --case, "%s"]}\n' "$first" >scankit-ci.yaml
parts() {
  "$scankit" doctor --python "$env" >/dev/null 2>&1
  "$scankit" env check --python "$env" >/dev/null 2>&1
  "$scankit" validate --python "$env" --seed 7 --device cpu --no-timing --case "$first" >/dev/null 2>&1
}
gate() { "$scankit" ci run --python "$env" --out kept --report junit=j.xml --report html=r.html >/dev/null 2>&1; }
resumed() { "$scankit" ci run --python "$env" --out kept --resume --report junit=j.xml >/dev/null 2>&1; }
parts # warm
for ((i = 0; i < rounds; i++)); do
  for what in parts gate resumed; do
    start=$EPOCHREALTIME
    "$what" || { echo "$what ended with status $?" >&2 && exit 1; }
    echo "$what $start $EPOCHREALTIME"
  done
done | awk '
  { took[$1, ++n[$1]] = $3 - $2; if ($1 == "gate") added[n[$1]] = took["gate", n[$1]] - took["parts", n[$1]] }
  function median(list, count,    i, j, t) {
    for (i = 2; i <= count; i++) for (j = i; j > 1 && list[j - 1] > list[j]; j--) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
    return count % 2 ? list[(count + 1) / 2] : (list[count / 2] + list[count / 2 + 1]) / 2
  }
  END {
    for (what in n) { for (i = 1; i <= n[what]; i++) one[i] = took[what, i]; printf "%-8s %.2f s (median of %d)\n", what, median(one, n[what]), n[what] }
    printf "ci run adds %.2f s to its parts (median)\n", median(added, n["gate"])
  }'

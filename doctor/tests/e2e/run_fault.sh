#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run_fault.sh FAULT SCANKIT MODULES WORK: plants FAULT of faults*.sh in a scratch environment, records what the real
# interpreter says, and holds the doctor to the right answer, with the observed import and without. WORK/FAULT keeps
# error.txt, doctor.json, static.json and doctor.txt.
set -euo pipefail
# shellcheck source=doctor/tests/e2e/plant.sh
. "$(dirname "$0")/plant.sh"
fault=$1 scankit=$2 MODULES=$3 work=$4/$1
rm -rf "$work" && mkdir -p "$work"
work=$(cd "$work" && pwd)

way=pth
# One fault in an environment without .pth lines, and those that change what lies beside torch.
case $fault in torch_version_mismatch | cuda_wheels_* | missing_dependency_*) way=plain ;; esac
plant "$fault" "$work" "$way"
: "${FOUND:=$ROOT}" "${LOG:=$ROOT}"

# 0. Where nothing is broken, nothing may be found.
if helps_itself; then
  # shellcheck disable=SC2086
  (cd "$STARTS_IN" && env $PREPARE "$scankit" doctor --python "$env/bin/python" --json $DOCTOR) >"$work/doctor.json" 2>"$work/doctor.err" && code=0 || code=$?
  VERDICT=healthy STATUS=0 ROOT='' FOUND=''
  expect_report "$work/doctor.json" "$code"
  rm -rf "$env"
  echo "ok: $fault: $MAY_WORK, and the doctor agrees"
  exit 0
fi

# 1. The environment is really broken, in the way meant.
code=0
# shellcheck disable=SC2086
(cd "$STARTS_IN" && env $PREPARE "$env/bin/python" -c "$IMPORT") >"$work/import.txt" 2>&1 || code=$?
tail -n 1 "$work/import.txt" | tee "$work/error.txt"
[ "$code" -ne 0 ] || expect_fail "the planted fault does not break the import: $IMPORT"
[ -z "$ERROR" ] || grep -qE "$ERROR" "$work/import.txt" || expect_fail "the interpreter's error is not '$ERROR'"

# 2. The doctor names it, watching the import and from the files alone.
for way in doctor static; do
  options=(doctor --python "$env/bin/python" --json)
  [ "$way" = static ] && options+=(--no-import)
  # shellcheck disable=SC2086
  (cd "$STARTS_IN" && env $PREPARE "$scankit" "${options[@]}" $DOCTOR) >"$work/$way.json" 2>"$work/$way.err" && code=0 || code=$?
  if [ "$way" = static ] && [ -n "$ONLY_OBSERVED" ]; then
    jq -e '.root == null' "$work/static.json" >/dev/null || expect_fail "the files alone cannot prove $(jq -c .root "$work/static.json")"
    continue
  fi
  expect_report "$work/$way.json" "$code"
  # shellcheck disable=SC2086
  [ -z "$DATED" ] || expect_dated "$work/$way.json" $DATED
done
# 3. The interpreter's own words, alone, lead there too.
if [ -n "$ERROR" ] && [ "$LOG" != none ]; then
  "$scankit" doctor --log "$work/import.txt" --json >"$work/log.json" 2>"$work/log.err" || true
  jq -r '.root.cause' "$work/log.json" | grep -qxE "$LOG" || expect_fail "the log alone gives $(jq -c .root "$work/log.json"), not $LOG"
fi
# shellcheck disable=SC2086
(cd "$STARTS_IN" && env $PREPARE "$scankit" doctor --python "$env/bin/python" $DOCTOR) >"$work/doctor.txt" 2>&1 || true
[ -z "$SAYS" ] || grep -qE -- "$SAYS" "$work/doctor.txt" || expect_fail "$work/doctor.txt does not say '$SAYS'"
rm -rf "$env" # the report stays, the environment does not: a run of all faults would leave gigabytes of links
echo "ok: $fault"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# printed_table.sh SCANKIT MODULES WORK [FAULT...]: runs run_printed.sh for every planted fault (or those named, or with
# --have for the rows that lie in WORK already) and prints all rows and the share of the broken environments that work
# after the printed command. Fails below 93 %.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
scankit=$1 modules=$2 work=$3
shift 3
mkdir -p "$work"
faults() { sed -nE 's/^fault_([a-z0-9_]+)\(\).*/\1/p' "$here"/faults*.sh; }
if [ "${1:-}" != --have ]; then
  [ $# -gt 0 ] || mapfile -t all < <(faults)
  for fault in "${@:-${all[@]}}"; do
    status=0
    bash "$here/run_printed.sh" "$fault" "$scankit" "$modules" "$work" >"$work/$fault.out" 2>&1 || status=$?
    [ $status != 77 ] || printf '%s\t-\t-\tskipped\t%s\n' "$fault" "cannot be planted here" >"$work/$fault.row"
    [ -e "$work/$fault.row" ] || printf '%s\t-\t-\tinvalid\t%s\n' "$fault" "$(tail -n 1 "$work/$fault.out")" >"$work/$fault.row"
    cat "$work/$fault.row"
  done
fi
cat "$work"/*.row | sort -t $'\t' -k 4,4 -k 2,2 -k 1,1 >"$work/table.txt"
count() { awk -F '\t' -v word="$1" '$4 == word' "$work/table.txt" | wc -l; }
worked=$(count worked) failed=$(($(count failed) + $(count none) + $(count invalid)))
echo
column -t -s $'\t' -o '  ' "$work/table.txt"
echo
share=$((worked + failed == 0 ? 0 : 1000 * worked / (worked + failed)))
echo "$worked of $((worked + failed)) broken environments work after the printed command: $((share / 10)).$((share % 10)) %;" \
  "$(count nobody) need somebody else, $(count skipped) could not be planted here"
[ "$share" -ge 930 ]

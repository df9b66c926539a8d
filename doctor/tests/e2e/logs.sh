#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# logs.sh SCANKIT WORK: every log of doctor/tests/logs through the command itself, and logs that are none.
set -euo pipefail
here=$(cd "$(dirname "$0")/.." && pwd)
scankit=$1 work=$2/logs
rm -rf "$work" && mkdir -p "$work"
fail() { echo "FAIL: $*" >&2 && exit 1; }

# ask LOG: CAUSE and STATUS of the answer.
ask() {
  STATUS=0
  "$scankit" doctor --log "$1" --json >"$work/out.json" 2>"$work/err.txt" || STATUS=$?
  CAUSE=$(jq -r '.root.cause // "none"' "$work/out.json")
}
seen=0
for log in "$here"/logs/*.txt; do
  name=$(basename "$log" .txt)
  ask "$log"
  case $name in
    note.* | nothing.*) [ "$CAUSE" = none ] && [ "$STATUS" -eq 4 ] || fail "$name: $CAUSE, exit $STATUS" ;;
    *) [ "$CAUSE" = "${name%%.*}" ] && [ "$STATUS" -eq 1 ] || fail "$name: $CAUSE, exit $STATUS" ;;
  esac
  seen=$((seen + 1))
done
[ "$seen" -gt 50 ] || fail "only $seen logs"

for bad in "$work/none" "$work"; do
  "$scankit" doctor --log "$bad" >"$work/out.txt" 2>"$work/err.txt" && fail "$bad was taken for a log"
  [ "$(wc -l <"$work/err.txt")" -eq 1 ] || fail "$bad: $(cat "$work/err.txt")"
done
head -c 300000000 /dev/zero | tr '\0' x >"$work/endless.txt" # one line of 300 MB
/usr/bin/time -f %M -o "$work/kib" "$scankit" doctor --log "$work/endless.txt" >"$work/out.txt" 2>&1 && fail "an endless line is no log"
[ "$(tail -n 1 "$work/kib")" -lt 65536 ] || fail "an endless line took $(cat "$work/kib") KiB"
rm "$work/endless.txt"
echo "ok: $seen logs"

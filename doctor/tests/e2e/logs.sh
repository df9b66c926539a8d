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

# A torch symbol is dated, in the report's own form.
cat >"$work/symbol.txt" <<'TEXT'
ImportError: /x/selective_scan_cuda.cpython-310-x86_64-linux-gnu.so: undefined symbol: _ZN3c104cuda9SetDeviceEi
TEXT
ask "$work/symbol.txt"
jq -e '.built_for | length == 1 and .[0].torch_min == "2.1" and .[0].torch_max == "2.2" and (.[0].evidence | length) > 0' \
  "$work/out.json" >/dev/null || fail "the symbol is not dated: $(jq -c .built_for "$work/out.json")"
"$scankit" doctor --log "$work/symbol.txt" >"$work/out.txt" || true
grep -q 'torch 2.1-2.2 exports it' "$work/out.txt" || fail "the text does not date the symbol: $(cat "$work/out.txt")"

# Other people's modules: scankit has none of that name to offer, and says so by not offering one.
repair_of() { # LOG TEXT...: what the text report advises
  printf '%s\n' "${@:2}" >"$1"
  "$scankit" doctor --log "$1" >"$work/out.txt" || true
  grep -E '^ *repair: ' "$work/out.txt"
}
text='undefined symbol: _ZN3c104cuda9SetDeviceEi'
repair_of "$work/flash.txt" "ImportError: /x/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so: $text" | grep -iE "scankit('s| module| fix)" &&
  fail "a module of scankit's is offered in place of flash_attn_2_cuda"
repair_of "$work/scan.txt" "ImportError: /x/selective_scan_cuda.cpython-310-x86_64-linux-gnu.so: $text" |
  grep -q 'scankit fix --module selective_scan_cuda' || fail "scankit's module is not offered: $(cat "$work/out.txt")"
repair_of "$work/mamba.txt" "ModuleNotFoundError: No module named 'mamba_ssm'" | grep -q 'scankit fix --package mamba-ssm' ||
  fail "the package is not offered: $(cat "$work/out.txt")"
repair_of "$work/yaml.txt" "ModuleNotFoundError: No module named 'yaml'" | grep -q 'pip install pyyaml' ||
  fail "the distribution of yaml is not named: $(cat "$work/out.txt")"

for bad in "$work/none" "$work"; do
  "$scankit" doctor --log "$bad" >"$work/out.txt" 2>"$work/err.txt" && fail "$bad was taken for a log"
  [ "$(wc -l <"$work/err.txt")" -eq 1 ] || fail "$bad: $(cat "$work/err.txt")"
done
head -c 300000000 /dev/zero | tr '\0' x >"$work/endless.txt" # one line of 300 MB
/usr/bin/time -f %M -o "$work/kib" "$scankit" doctor --log "$work/endless.txt" >"$work/out.txt" 2>&1 && fail "an endless line is no log"
[ "$(tail -n 1 "$work/kib")" -lt 65536 ] || fail "an endless line took $(cat "$work/kib") KiB"
rm "$work/endless.txt"
echo "ok: $seen logs"

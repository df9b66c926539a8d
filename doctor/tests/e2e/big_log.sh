#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# big_log.sh SCANKIT: a log of a gigabyte goes through in little memory, and the error at its end is the answer.
set -euo pipefail
scankit=$1 work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
fail() { echo "FAIL: $*" >&2 && exit 1; }
lines() {
  python3 -c '
import sys
block = "".join("step %d loss 2.%d \x1b[32mok\x1b[0m /data/run/%d.pt\n" % (i, i, i) for i in range(20000)) * 2
for _ in range((1 << 30) // len(block) + 1): sys.stdout.write(block)'
  printf 'ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory\n'
}
lines | /usr/bin/time -f '%M %e' -o "$work/used" "$scankit" doctor --log - --json >"$work/out.json" || [ $? -eq 1 ] || fail "exit status"
[ "$(jq -r .root.cause "$work/out.json")" = missing_cudart ] || fail "$(jq -c .root "$work/out.json")"
read -r kib seconds < <(tail -n 1 "$work/used")
[ "$kib" -lt 65536 ] || fail "a gigabyte of log took $kib KiB"
echo "ok: 1 GiB in $seconds s and $kib KiB"

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# selftest.sh SCANKIT WORK: `scankit selftest` names all that it plants, for a Python with torch, and leaves nothing behind.
set -euo pipefail
scankit=$(realpath "$1") work=$2/selftest
E2E=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=ci/fixtures.sh
. "$E2E/../../../ci/fixtures.sh"
# shellcheck source=doctor/tests/e2e/expect.sh
. "$E2E/expect.sh"
rm -rf "$work" && mkdir -p "$work/tmp"
export TMPDIR=$work/tmp
python=$(fx_torch_env)/bin/python
left() { find "$TMPDIR" -mindepth 1 | head -n 1; }

code=0
"$scankit" selftest --python "$python" --json >"$work/answer.json" 2>"$work/progress.txt" || code=$?
jq -r '.faults[] | select(.outcome != "named") | [.fault, .outcome, .expected, .named, .why] | @tsv' "$work/answer.json"
[ "$code" -eq 0 ] || expect_fail "exit status $code"
jq -e '.verdict == "passed" and .imports and (.faults | length) >= 19 and all(.faults[]; .outcome == "named")' \
  "$work/answer.json" >/dev/null || expect_fail "not everything was planted and named"
# The interpreter's own words, of each fault that it sees.
jq -e '[.faults[] | select(.import_error != null)] | length >= 17' "$work/answer.json" >/dev/null ||
  expect_fail "the interpreter did not fail"
grep -v '^scankit: \[[0-9]*/[0-9]*\] planting .* [0-9]* s$' "$work/progress.txt" && expect_fail "it says more than what takes long"
[ -z "$(left)" ] || expect_fail "left behind: $(left)"

# What --keep leaves can be asked again, by the command of the answer.
mapfile -t again < <(PATH=$(dirname "$python"):$PATH "$scankit" selftest --keep --json 2>"$work/kept.txt" |
  jq -r '.faults[] | select(.fault == "git-lfs") | .command[1:][]')
kept=$(sed -n 's/^scankit: kept //p' "$work/kept.txt")
[ -d "$kept" ] || expect_fail "--keep kept nothing"
[ "$("$scankit" "${again[@]}" 2>/dev/null | jq -r .root.cause)" = corrupt_binary ] || expect_fail "not named again"
rm -rf "$kept"

# Stopped by the user: nothing stays, and the status says why.
"$scankit" selftest --python "$python" >"$work/stopped.txt" 2>/dev/null &
pid=$!
for _ in $(seq 100); do [ -z "$(left)" ] || break; sleep 0.05; done
kill -TERM "$pid"
code=0
wait "$pid" || code=$?
[ "$code" -eq 143 ] && [ -z "$(left)" ] || expect_fail "stopped with status $code, left: $(left)"

TMPDIR=/nonexistent "$scankit" selftest --python "$python" >"$work/no_folder.txt" 2>&1 && code=0 || code=$?
[ "$code" -eq 3 ] && [ "$(wc -l <"$work/no_folder.txt")" -eq 1 ] || expect_fail "no folder: status $code"
"$scankit" selftest --python /nonexistent/python >"$work/no_python.txt" 2>&1 && code=0 || code=$?
[ "$code" -eq 2 ] && [ "$(wc -l <"$work/no_python.txt")" -eq 1 ] || expect_fail "no Python: status $code"
echo "ok: $(jq '.faults | length' "$work/answer.json") answers"

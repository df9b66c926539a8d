#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# progress.sh WORK: ci/progress.sh shows that a silent command lives, passes its status on, and leaves nothing behind.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
work=$1
rm -rf "$work" && mkdir -p "$work"
failures=0
check() { # WHAT COMMAND...
  local what=$1
  shift
  if "$@"; then echo "ok    $what"; else echo "FAILED $what" && failures=$((failures + 1)); fi
}
# watched OUTPUT [--tty] SCRIPT: SCRIPT after `. ci/progress.sh`, watched for silences of more than 10 seconds.
watched() {
  local output=$1 tty=()
  shift
  [ "$1" != --tty ] || { tty=(--tty) && shift; }
  TERM=${TERM_HERE:-xterm} python3 "$here/silence.py" 10 "$output" "${tty[@]}" bash -c "set -euo pipefail; . '$here/../progress.sh'; $1"
}
count() { grep -c -- "$1" "$2" || true; }
status_of() { local code=0; "${@:2}" >/dev/null || code=$?; [ "$code" = "$1" ]; }
contains() { tr '\r' '\n' <"$1" | grep -qE -- "$2"; }
lacks() { ! grep -q -- "$2" "$1"; }

check "a silent command of 12 s is never silent for 10 s" watched "$work/plain" "live quiet no_detail - sleep 12; echo end"
check "lines with the elapsed time come without a terminal" contains "$work/plain" '^quiet: 0:0[4-7]$'
check "and no control character" lacks "$work/plain" $'[\e\r]'
check "without the helper the same is too silent" status_of 1 watched "$work/silent" "sleep 11"
check "a terminal has one line that is rewritten" watched "$work/tty" --tty "live quiet no_detail - sleep 3; echo end"
check "by a carriage return" grep -q $'\rquiet: 0:0[1-3]\e\\[K' "$work/tty"
check "and is cleared at the end" contains "$work/tty" $'^(\e\\[K)?end$'
TERM_HERE=dumb check "a dumb terminal gets lines" watched "$work/dumb" --tty "SCANKIT_TICK=1 live quiet no_detail - sleep 3"
check "without control sequences" lacks "$work/dumb" $'\e'
check "the status is the command's" status_of 7 watched "$work/status" "live x no_detail - bash -c 'exit 7'"
check "a command that ends at once waits for no tick" watched "$work/fast" "SECONDS=0; for i in 1 2 3 4; do live x no_detail - true; done; [ \$SECONDS -lt 3 ]"
check "no sleep is left" watched "$work/left" "SCANKIT_TICK=7771 live x no_detail - sleep 0.5; sleep 0.5; ! ps -eo args | grep -q '[s]leep 7771'"

printf '[1/8] a\n[2/8] b\nwarning: x\n' >"$work/ninja"
printf 'dlstatus:2:40.11:Retrieving file 3 of 9\npmstatus:libc6:62.5:Unpacking libc6:amd64 (amd64)\n' >"$work/apt"
mkdir "$work/pip" && printf 'Collecting torch\n  Downloading torch-2.0-py3-none-any.whl (2.0 MB)\n' >"$work/pip/log"
mkdir "$work/pip/pip-unpack-x" && head -c 500000 /dev/zero >"$work/pip/pip-unpack-x/torch-2.0-py3-none-any.whl"
says() { [ "$("$1" "$2")" = "$3" ] || { "$1" "$2" && false; }; }
# shellcheck source=ci/progress.sh
. "$here/../progress.sh"
check "ninja's n of m" says ninja_detail "$work/ninja" '2 of 8 (25 %)'
check "apt's percentage and package" says apt_detail "$work/apt" '62 %, Unpacking libc6:amd64 (amd64)'
check "the bytes of a download" says pip_detail "$work/pip" 'torch-2.0, 0.5 of 2.0 MB (25 %)'
[ "$failures" -eq 0 ] || { echo "$failures failed" && exit 1; }

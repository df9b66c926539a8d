#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An nvcc whose cicc crashes, hangs or leaks the time:  nvcc_faults.sh SCANKIT
# The toolkit is the real one, by links, with a wrapper in the place of cicc, the part that compiles device code.
set -euo pipefail
# shellcheck source=builder/tests/checks.sh
. "$(dirname "$0")/checks.sh"
scankit=$1
real=$("$scankit" build --list-toolchains --toolchain nvcc --cache-dir "$work/listed" 2>/dev/null |
  sed -n 's/^nvcc [^:]*: //p' | head -n 1) || true
real=$(readlink -f "${real:-/nonexistent}") || true
root=$(dirname "$(dirname "$real")")
[ -x "$root/bin/nvcc" ] && [ -x "$root/nvvm/bin/cicc" ] || { echo "SKIPPED: no whole nvcc on this machine"; exit 77; }
mkdir "$work/tmp"
export TMPDIR=$work/tmp

# toolkit NAME LINE: prints the nvcc of a toolkit whose cicc is that line of shell; $cicc is the real one.
toolkit() {
  local at=$work/$1
  mkdir "$at"
  cp -as "$root/." "$at/"
  rm -r "${at:?}/bin" "${at:?}/nvvm/bin"
  cp -r "$root/bin" "$at/bin"
  mkdir "$at/nvvm/bin"
  printf '#!/bin/bash\ncicc=%q\n%s\n' "$root/nvvm/bin/cicc" "$2" >"$at/nvvm/bin/cicc"
  chmod +x "$at/nvvm/bin/cicc"
  echo "$at/bin/nvcc"
}
build() {
  status_is "$1" "$scankit" build --module causal_conv1d_cuda --toolchain "$2" --arch sm_90 --cache-dir "$work/cache" \
    --out "$work/out_$1/" "${@:3}"
}
left_nothing() { [ -z "$(ls -A "$work/tmp")" ] && [ ! -e "$work/out_5/causal_conv1d_cuda.abi3.so" ]; }

# shellcheck disable=SC2016  # for the wrapper
plain=$(toolkit plain 'exec "$cicc" "$@"')
check "a wrapper alone changes nothing" build 0 "$plain"
# shellcheck disable=SC2016
crash=$(toolkit crash 'kill -SEGV $$')
check "a cicc that crashes is a failed build" build 5 "$crash"
check "named as a crash" grep -q 'compiling conv_[a-z0-9]* for sm_90 failed: the compiler crashed (SIGSEGV)' "$work/err"
check "nothing is left" left_nothing
# shellcheck disable=SC2016
killed=$(toolkit killed 'kill -KILL $$')
check "one that is killed too" build 5 "$killed"
check "named as killed" says "the compiler was killed (SIGKILL), most likely for lack of memory"
hang=$(toolkit hang 'echo $$ >"$0.pid"; exec sleep 1000')
check "one that hangs too" build 5 "$hang" --timeout 3 -j 1
check "named as one" says "the compiler exceeded its time limit of 3 seconds and was killed"
# A dead one stays in /proc until its new parent, the first process of this machine or container, asks for it.
ended() { ! grep -q '^State:[[:space:]]*[^ZX[:space:]]' "/proc/$1/status" 2>/dev/null; }
check "it does not go on" ended "$(cat "$work/hang/nvvm/bin/cicc.pid")"
check "nothing is left" left_nothing
# What nvcc started is not a child of scankit's, and nobody tells it that scankit was killed.
killed_builder() {
  local cicc=$work/hang/nvvm/bin/cicc.pid builder
  rm -f "$cicc"
  "$scankit" build --module causal_conv1d_cuda --toolchain "$hang" --arch sm_90 --cache-dir "$work/cache2" -j 1 \
    --out "$work/out_killed/" >"$work/out" 2>"$work/err" </dev/null &
  builder=$!
  until [ -s "$cicc" ] || ! kill -0 "$builder" 2>/dev/null; do sleep 0.05; done
  kill -KILL "$builder"
  wait "$builder" || true
  for _ in $(seq 100); do
    ended "$(cat "$cicc")" && return 0
    sleep 0.05
  done
  return 1
}
check "a builder that is killed leaves none running" killed_builder
check "and the next build removes what it left" build 0 "$plain"
check "nothing is left" test -z "$(ls -A "$work/tmp")"
# shellcheck disable=SC2016
leak=$(toolkit leak '"$cicc" "$@" || exit
while [ $# -gt 0 ]; do [ "$1" = -o ] && echo ".visible .global .align 4 .u32 leaked_time = $(date +%s);" >>"$2"; shift; done')
check "one that leaks the time is found out" build 1 "$leak" --check-reproducible
check "with section and symbol" \
  grep -q 'image conv_f32 for sm_90: section \.nv\.global\.init differs .*, in symbol leaked_time' "$work/out"
end

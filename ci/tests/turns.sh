#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# turns.sh: what ci/test.sh takes at which commit, by the real script in a repository of its own, whose cmake and ctest only note
# what they were asked for. A commit for a long test leaves out the sanitizers that --asan-slice takes, never those of --asan.
set -euo pipefail
source=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
mkdir -p "$work/bin" "$work/tree/ci"
cp "$source"/ci/{test.sh,progress.sh,not_passed.py,in_turn.txt} "$work/tree/ci/"
for script in install-deps.sh link-torch-env.sh; do echo 'exit 0' >"$work/tree/ci/$script"; done
cat >"$work/bin/cmake" <<'SH'
#!/bin/sh
echo "cmake $*" >>"$ASKED"
SH
cat >"$work/bin/ctest" <<'SH'
#!/bin/bash
# Two long tests, two of the matrix, three components; every test passes.
case " $* " in *' -N '*)
  case " $* " in *'^long$'*) names='long.a long.b' ;; *'^component$'*) names='root one two' ;; *) names='matrix.a matrix.b' ;; esac
  n=0
  for name in $names; do n=$((n + 1)) && echo "  Test #$n: $name"; done
  exit 0 ;;
esac
echo "ctest $*" >>"$ASKED"
while [ $# -gt 0 ]; do [ "$1" != --output-junit ] || report=$2; shift; done
echo '<testsuite name="x" tests="1" failures="0" disabled="0" skipped="0" />' >"$report"
SH
chmod +x "$work/bin"/*
cd "$work/tree"
git init -q . && git config user.email test@example.org && git config user.name test
commits() { until [ "$(git rev-list --count HEAD 2>/dev/null || echo 0)" -eq "$1" ]; do git commit -q --allow-empty -m x; done; }
failures=0
# took COMMITS WHAT OPTION...: at that commit, these of: matrix long asan.
took() {
  local count=$1 wanted=$2 got='' status=0
  shift 2
  commits "$count"
  : >"$work/asked.txt"
  mkdir -p build/ci build/ci-asan
  ASKED=$work/asked.txt PATH="$work/bin:$PATH" bash ci/test.sh "$@" >"$work/said.txt" 2>&1 || status=$?
  grep -q -- '-L ^matrix\$' "$work/asked.txt" && got+=' matrix'
  grep -q -- '-L ^long\$' "$work/asked.txt" && got+=' long'
  grep -q -- 'SCANKIT_SANITIZE=ON' "$work/asked.txt" && got+=' asan'
  [ "$status" -eq 0 ] && [ "${got# }" = "$wanted" ] && return 0
  echo "FAILED: test.sh $* at commit $count took '${got# }', not '$wanted' (status $status)"
  cat "$work/said.txt"
  failures=$((failures + 1))
}
took 4 'matrix asan' --slice 2 --asan-slice 3 --long 5
took 5 'long' --slice 2 --asan-slice 3 --long 5
took 5 'long asan' --slice 2 --asan --long 5
took 5 'long asan' --slice 2 --asan --asan-slice 3 --long 5
took 5 'long asan' --slice 2 --asan-slice 3 --asan --long 5
took 5 'matrix asan' --slice 2 --asan-slice 3
took 5 'asan' --asan-only --long 5
[ $failures -eq 0 ]

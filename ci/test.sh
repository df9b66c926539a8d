#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds scankit and runs its tests. The last line is 'N passed, N failed, N skipped'.
set -euo pipefail
usage() {
  cat <<'TEXT'
usage: ci/test.sh [--label ci|matrix|gpu|unit|e2e|lint] [--turns N] [--slice N] [--long N] [--asan] [--asan-only] [--asan-slice N] [--build DIR] [--jobs N] [-- CTEST_ARGUMENT...]
  --label      which tests (default: ci)
  --slice N    and every Nth of the matrix that is not labelled large or long, beginning one further with each commit
  --long N     with every Nth commit, one of the tests labelled long (minutes each), in place of the parts of the matrix and of the
               components under the sanitizers that --asan-slice takes
  --asan       then the unit tests once more under AddressSanitizer and UndefinedBehaviorSanitizer
  --asan-only  only those
  --asan-slice N  one of N parts of the components under the sanitizers (default: all), the next with each commit
  --build DIR  the build tree (default: build/ci); kept, so a second run is incremental
TEXT
}
cd "$(dirname "$0")/.."
# shellcheck source=ci/progress.sh
. ci/progress.sh
label=ci turns=1 slice=0 long=0 asan_slice=1 build=build/ci jobs=$(nproc) asan=no plain=yes more=()
while [ $# -gt 0 ]; do
  case $1 in
    --label) label=$2 && shift ;;
    --turns) turns=$2 && shift ;;
    --slice) slice=$2 && shift ;;
    --long) long=$2 && shift ;;
    --build) build=$2 && shift ;;
    --jobs) jobs=$2 && shift ;;
    --asan) asan=yes ;;
    --asan-only) asan=yes plain=no ;;
    --asan-slice) [ $asan = yes ] || asan=part; asan_slice=$2 && shift ;;
    --) shift && more=("$@") && break ;;
    -h | --help) usage && exit 0 ;;
    *) usage >&2 && exit 2 ;;
  esac
  shift
done

phase() { printf '\n=== %s (%s s so far)\n' "$*" "$SECONDS"; }
passed=0 failed=0 skipped=0 broken='' told=''

# run_tests BUILD LABEL CTEST_ARGUMENT...: adds to the counts. One test more than there are processors: some wait.
run_tests() {
  local report
  report=$(cd "$1" && pwd)/junit.xml
  rm -f "$report"
  ctest --test-dir "$1" -L "^$2\$" -j $((jobs + 1)) --output-on-failure --no-tests=error --output-junit "$report" "${@:3}" \
    ${more[@]+"${more[@]}"} || true
  [ -s "$report" ] || { broken="ctest left no report in $1" && return 0; }
  count() { grep -o "<testsuite[^>]*" -m 1 -z "$report" | tr -d '\0' | grep -oE "[[:space:]]$1=\"[0-9]+\"" | grep -oE '[0-9]+'; }
  local tests failures disabled skips
  tests=$(count tests) failures=$(count failures) disabled=$(count disabled) skips=$(count skipped)
  [ "${tests:-0}" -gt 0 ] || { broken="no test in $1 is labelled $2" && return 0; }
  failed=$((failed + failures)) skipped=$((skipped + skips + disabled))
  passed=$((passed + tests - failures - skips - disabled))
  told+=$(python3 ci/not_passed.py "$report")$'\n'
}

turn=$(git rev-list --count HEAD 2>/dev/null || echo 0)
# Names in ctest's order, without the setup tests, which are ctest's to add.
names_of() { ctest -N -FA . "$@" | sed -nE 's/^ *Test +#[0-9]+: //p'; }
# turn_of N CTEST_ARGUMENT...: the names of the tests whose turn it is, one of N.
turn_of() { names_of "${@:2}" | sort | awk -v n="$1" -v turn="$turn" 'NR % n == turn % n'; }
# long_turn BUILD: the name of the long test whose turn it is, if this is a commit for one.
# N has no divisor in common with the numbers of parts, so that what waits for a long test comes another time.
long_turn() {
  [ "$long" -gt 0 ] && [ $((turn % long)) -eq 0 ] || return 0
  names_of --test-dir "$1" -L '^long$' | LC_ALL=C sort | awk -v turn="$((turn / long))" '{ name[NR - 1] = $0 } END { if (NR) print name[turn % NR] }'
}
# not_in_turn N BUILD LABEL: the names of the tests of ci/in_turn.txt whose turn it is not.
# The tests of one line are neighbours, so that each line with N tests or more keeps one in every run.
not_in_turn() {
  local line
  grep -vE '^(#|$)' ci/in_turn.txt | while read -r line; do
    names_of --test-dir "$2" -L "^$3\$" -R "$line" | LC_ALL=C sort | grep . ||
      { echo "test.sh: ci/in_turn.txt: no test's name matches $line" >&2 && return 1; }
  done | awk -v n="$1" -v turn="$turn" '!seen[$0]++ && ++count % n != turn % n'
}
# components_of N BUILD: one of N parts of the components, neighbours in the order of the build, which need the same libraries.
# The root directory's tests come first there, and need all of them.
components_of() {
  names_of --test-dir "$2" -L '^component$' | awk -v n="$1" -v turn="$turn" '
    NR == 1 { root = $0; next } { name[NR - 2] = $0 }
    END { name[NR - 1] = root; for (i = 0; i < NR; i++) if (int(i * n / NR) == turn % n) print name[i] }'
}
# Names on stdin, a regular expression of exactly these. A parametrised test ends in '# GetParam() = ...'.
any_of() { sed 's/[].()*+?^$|[\\]/\\&/g' | paste -sd '|' | sed 's/.*/^(&)$/'; }

configure_tree() { # BUILD CMAKE_ARGUMENT...
  cmake -S . -B "$1" -G Ninja -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -DCMAKE_COMPILE_WARNING_AS_ERROR=ON "${@:2}" >"$1.configure.log" 2>&1 ||
    { cat "$1.configure.log" && return 1; }
}

build_tree() { # BUILD [--target NAME...]: ninja's n of m on one line; its output where it fails
  local log=$1.build.log
  rm -f "$log"
  live "compiling" ninja_detail "$log" logged "$log" cmake --build "$1" -j "$jobs" "${@:2}" || { tail -n 60 "$log" && return 1; }
  tail -n 1 "$log"
}

finish() {
  grep . <<<"$told" || true
  [ -z "$broken" ] || { echo "test.sh: $broken" >&2 && failed=$((failed + 1)); }
  printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
  [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
}

phase packages
bash ci/install-deps.sh --browser || { broken='packages are missing' && finish; exit 1; }
mkdir -p "$(dirname "$build")"

phase "a Python with torch"
bash ci/link-torch-env.sh "$build-env" || { broken='no environment with torch could be made' && finish; exit 1; }
SCANKIT_TEST_PYTHON=$PWD/$build-env/bin/python
[ "${build#/}" = "$build" ] || SCANKIT_TEST_PYTHON=$build-env/bin/python
export SCANKIT_TEST_PYTHON
# torch's threads of tests side by side would wait for each other by spinning: two thirds of validate's processor time.
export OMP_WAIT_POLICY=passive

if [ $plain = yes ]; then
  phase "build in $build"
  { configure_tree "$build" -DCMAKE_BUILD_TYPE=Release && build_tree "$build"; } ||
    { broken='the build failed' && finish; exit 1; }
  others=()
  if [ "$turns" -gt 1 ]; then
    waiting=$(not_in_turn "$turns" "$build" "$label") || { broken='ci/in_turn.txt is not right' && finish; exit 1; }
    others=(-E "$(any_of <<<"$waiting")")
    phase "tests labelled $label, without $(wc -l <<<"$waiting") whose turn it is not"
  else
    phase "tests labelled $label"
  fi
  run_tests "$build" "$label" ${others[@]+"${others[@]}"}
  now=$(long_turn "$build")
  if [ -n "$now" ]; then
    phase "$now, in place of parts of the matrix and of the sanitizers"
    run_tests "$build" long -R "$(any_of <<<"$now")"
    [ $asan = yes ] || asan=no
  elif [ "$slice" -gt 0 ]; then
    phase "one of $slice parts of the matrix"
    run_tests "$build" matrix -R "$(turn_of "$slice" --test-dir "$build" -L '^matrix$' -LE '^(large|long)$' | any_of)"
  fi
fi
if [ $asan != no ]; then
  phase "build with AddressSanitizer and UndefinedBehaviorSanitizer in $build-asan"
  configure_tree "$build-asan" -DCMAKE_BUILD_TYPE=Debug -DSCANKIT_STATIC=OFF -DSCANKIT_SANITIZE=ON ||
    { broken='the sanitizer tree was not configured' && finish; exit 1; }
  targets=scankit_unit_tests these=()
  if [ "$asan_slice" -gt 1 ]; then
    components=$(components_of "$asan_slice" "$build-asan")
    targets=$(while read -r name; do echo "scankit_${name}_test"; done <<<"$components")
    these=(-R "$(any_of <<<"$components")")
  fi
  # shellcheck disable=SC2086  # one target a word
  build_tree "$build-asan" --target $targets || { broken='the sanitizer build failed' && finish; exit 1; }
  phase "unit tests under the sanitizers: ${targets//$'\n'/ }"
  run_tests "$build-asan" unit ${these[@]+"${these[@]}"}
fi
phase "done"
finish

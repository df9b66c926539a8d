# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by shell tests of the builder and by scripts that plant one of the doctor's faults (faults_*.py).
E2E=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=ci/fixtures.sh
. "$E2E/../../../ci/fixtures.sh"

expect_fail() {
  echo "FAIL: $*" >&2
  exit 1
}

# plant FAULT WORK [WAY]: a scratch environment WORK/env with that fault. Sets $env, IMPORT, ERROR, ROOT, PREPARE, DOCTOR,
# STARTS_IN and MAY_WORK (fault.py says what they are). Reads $MODULES, the folder of build_modules.sh. `healthy:NAME` makes a
# healthy environment.
plant() {
  local said
  said=$(python3 -B "$E2E/plant.py" "$1" "$2" "$MODULES" ${3:+"$3"}) || exit $?
  eval "$said"
}
# Of a fault that some torch helps itself out of (MAY_WORK says how): whether this one does.
helps_itself() {
  # shellcheck disable=SC2086,SC2154  # plant sets them
  [ -n "$MAY_WORK" ] && (cd "$STARTS_IN" && env $PREPARE "$env/bin/python" -c "$IMPORT") >/dev/null 2>&1
}

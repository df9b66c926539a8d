# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by scripts that plant one of the doctor's faults (faults_*.py).
E2E=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=ci/fixtures.sh
. "$E2E/../../../ci/fixtures.sh"

# plant FAULT WORK [WAY]: a scratch environment WORK/env with that fault. Sets $env, IMPORT, ERROR, ROOT, PREPARE, DOCTOR
# and STARTS_IN (fault.py says what they are). Reads $MODULES, the folder of build_modules.sh. `healthy:NAME` makes a
# healthy environment.
plant() {
  local said
  said=$(python3 -B "$E2E/plant.py" "$1" "$2" "$MODULES" ${3:+"$3"}) || exit $?
  eval "$said"
}

# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by the tests that plant a fault of faults*.sh, here and of the builder.
FAULTS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=ci/fixtures.sh
. "$FAULTS/../../../ci/fixtures.sh"
for file in "$FAULTS"/faults*.sh; do
  # shellcheck source=doctor/tests/e2e/faults.sh
  . "$file"
done
# shellcheck source=doctor/tests/e2e/expect.sh
. "$FAULTS/expect.sh"

# plant FAULT WORK WAY: a scratch environment WORK/env with that fault. Sets $env, and what the fault's function says of it.
plant() {
  env=$(fx_scratch_env "$2/env" "$3")
  # shellcheck disable=SC2034  # for the test
  IMPORT='import torch, selective_scan_cuda' ERROR='' ROOT='' FOUND='' VERDICT=broken STATUS=1 PREPARE='' DOCTOR='' STARTS_IN=$2 \
    ONLY_OBSERVED='' LOG='' DATED='' SAYS='' MAY_WORK=''
  "fault_$1" "$env"
}
# Of a fault that some torch helps itself out of (MAY_WORK says how): whether this one does.
helps_itself() {
  # shellcheck disable=SC2086
  [ -n "$MAY_WORK" ] && (cd "$STARTS_IN" && env $PREPARE "$env/bin/python" -c "$IMPORT") >/dev/null 2>&1
}

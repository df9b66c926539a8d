#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fix_faults.sh FAULT SCANKIT MODULES: plants FAULT of the doctor's faults*.sh in a scratch environment, repairs it by
# `scankit fix`, asks the real interpreter, and takes it back, byte by byte.
set -euo pipefail
FAULTS=$(cd "$(dirname "$0")/../../doctor/tests/e2e" && pwd)
# shellcheck source=ci/fixtures.sh
. "$FAULTS/../../../ci/fixtures.sh"
for file in "$FAULTS"/faults*.sh; do
  # shellcheck source=doctor/tests/e2e/faults.sh
  . "$file"
done
# shellcheck source=doctor/tests/e2e/expect.sh
. "$FAULTS/expect.sh"
# shellcheck source=builder/tests/checks.sh
. "$(dirname "$0")/checks.sh"
fault=$1 scankit=$2 MODULES=$3
unset VIRTUAL_ENV PYTHONPATH
wheels=$(fx_wheels) || exit 77
export XDG_CACHE_HOME=${SCANKIT_FIX_CACHE:-$work/cache} PIP_FIND_LINKS="$wheels $SCANKIT_CACHE/packages"
way=pth
case $fault in torch_* | cuda_wheels_* | compound_torch_* | ld_library_path_*) way=plain ;; esac
env=$(fx_scratch_env "$work/env" "$way")
IMPORT='import torch, selective_scan_cuda' PREPARE='' STARTS_IN=$work
# shellcheck disable=SC2034  # the fault makers set them for the doctor's tests
DOCTOR='' ERROR='' ROOT='' FOUND='' VERDICT='' STATUS='' ONLY_OBSERVED='' LOG='' DATED='' SAYS=''
"fault_$fault" "$env"

# Everything below the environment but Python's own cache and our state, with its kind, mode and bytes.
whole() {
  (cd "$env" && find . -name __pycache__ -prune -o -path ./.scankit -prune -o \( -type f -o -type l \) -printf '%p %y %m %s %l\n' | sort)
  (cd "$env" && find . -name __pycache__ -prune -o -path ./.scankit -prune -o -type f -size -200k -exec sha256sum {} + | sort)
}
works() { # in a shell that activates the environment, as its user would
  # shellcheck disable=SC2086
  (cd "$STARTS_IN" && env $PREPARE PYTHONDONTWRITEBYTECODE=1 bash -c '. "$1/bin/activate" && python -c "$2"' - "$env" "$IMPORT") >"$work/import.txt" 2>&1
}
say_why() { tail -n 3 "$work/import.txt"; false; }
fix() { # fix EXPECTED_STATUS OPTION...
  # shellcheck disable=SC2086
  (cd "$STARTS_IN" && status_is "$1" env $PREPARE "$scankit" fix --python "$env/bin/python" --arch compute_75 "${@:2}")
}

! works || expect_fail "$fault does not break the import"
whole >"$work/before"
check "$fault: the plan alone changes nothing" fix 0 --dry-run
cat "$work/out"
whole | cmp -s - "$work/before" || expect_fail "a dry run changed something"
check "$fault: fix repairs it" fix 0 --yes
check "$fault: the interpreter agrees" works || say_why || true
check "$fault: it can be taken back" status_is 0 "$scankit" restore --python "$env/bin/python"
whole >"$work/after"
check "$fault: byte by byte" diff "$work/before" "$work/after"
check "$fault: twice restored is once restored" status_is 0 "$scankit" restore --python "$env/bin/python"
[ "$failures" = 0 ] || { echo "$failures failed"; exit 1; }

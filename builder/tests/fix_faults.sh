#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fix_faults.sh FAULT SCANKIT MODULES: plants FAULT of the doctor's faults_*.py in a scratch environment, repairs it by
# `scankit fix`, asks the real interpreter, and takes it back, byte by byte.
set -euo pipefail
# shellcheck source=doctor/tests/e2e/plant.sh
. "$(dirname "$0")/../../doctor/tests/e2e/plant.sh"
fault=$1 scankit=$2 MODULES=$3
# shellcheck source=builder/tests/fix.sh
. "$(dirname "$0")/fix.sh"
wheels=$(fx_wheels) || exit 77
export PIP_FIND_LINKS="$wheels $SCANKIT_CACHE/packages"
way=pth
case $fault in torch_* | cuda_wheels_* | compound_torch_* | ld_library_path_*) way=plain ;; esac
plant "$fault" "$work" "$way"
works() { # in a shell that activates the environment, as its user would
  # shellcheck disable=SC2086
  (cd "$STARTS_IN" && env $PREPARE PYTHONDONTWRITEBYTECODE=1 bash -c '. "$1/bin/activate" && python -c "$2"' - "$env" "$IMPORT") >"$work/import.txt" 2>&1
}
say_why() { tail -n 3 "$work/import.txt"; false; }
fix() { # fix EXPECTED_STATUS OPTION...
  # shellcheck disable=SC2086
  (cd "$STARTS_IN" && status_is "$1" env $PREPARE "$scankit" fix --python "$env/bin/python" --arch compute_75 "${@:2}")
}

# Of two repairs that have nothing to do with each other one may fail: mamba-ssm 2.3.1 does not import beside every
# transformers that the index has on this day. Then the fix ends with 6, and what did work stays.
status=0

if helps_itself; then echo "SKIP: $MAY_WORK"; exit 77; fi
! works || expect_fail "$fault does not break the import"
{ whole && contents; } >"$work/before"
check "$fault: the plan alone changes nothing" fix 0 --dry-run
cat "$work/out"
{ whole && contents; } | cmp -s - "$work/before" || expect_fail "a dry run changed something"
if [ "$fault" = python_abi_tag_mismatch ] && ! fix 0 --yes; then status=6; fi
[ "$fault" = python_abi_tag_mismatch ] || check "$fault: fix repairs it" fix 0 --yes
if [ $status = 0 ] && [ "$fault" = python_abi_tag_mismatch ]; then
  check "$fault: mamba_ssm imports" "$env/bin/python" -c 'from mamba_ssm import Mamba'
elif [ $status != 0 ]; then
  check "$fault: it says what it kept" says 'repaired: `import selective_scan_cuda` works'
  check "$fault: and what not" says "still wrong, and unchanged: \`import mamba_ssm\` fails"
  check "$fault: nothing of that stays" test ! -e "$(fx_site "$env/bin/python")/transformers"
fi
check "$fault: the interpreter agrees" works || say_why || true
# A file of a folder of PYTHONPATH goes back only where that is agreed to.
if ! restore >"$work/out" 2>&1 && says 'outside the environment'; then
  check "$fault: without an answer nothing is taken back" says 'Nothing was changed. To run the plan: add --yes'
  check "$fault: it can be taken back" status_is 0 restore --yes
fi
{ whole && contents; } >"$work/after"
check "$fault: byte by byte" diff "$work/before" "$work/after"
check "$fault: twice restored is once restored" status_is 0 restore
end

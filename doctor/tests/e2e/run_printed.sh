#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run_printed.sh FAULT SCANKIT MODULES WORK: plants FAULT of faults*.sh, sees its own failing command fail, runs the last
# line of the doctor's report as it is printed (`scankit fix` gets --yes, since nobody is there to answer), and runs the
# failing command again: it must work, and the doctor must no longer find that cause. A line that sets a variable holds for
# the shell that ran it. WORK/FAULT.row keeps FAULT, cause, command, result and reason, parted by tabs.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=doctor/tests/e2e/plant.sh
. "$here/plant.sh"
# shellcheck source=doctor/tests/e2e/printed_nobody.sh
. "$here/printed_nobody.sh"
fault=$1 scankit=$(readlink -f "$2") MODULES=$(readlink -f "$3") row=$4/$1.row work=$4/$1
rm -rf "$work" "$row" && mkdir -p "$work"
work=$(cd "$work" && pwd)
# The index is the user's; what the fixtures hold is taken from there. conda and uv are not what these environments came from.
PIP_FIND_LINKS="$(fx_wheels) $SCANKIT_CACHE/packages ${PIP_FIND_LINKS:-}"
export PIP_FIND_LINKS PYTHONDONTWRITEBYTECODE=1

way=pth
# What changes files of torch must not reach the shared ones, and what installs torch must find it where it belongs.
case $fault in torch_* | cuda_wheels_* | compound_torch_* | ld_library_path_* | missing_dependency_*) way=plain ;; esac
plant "$fault" "$work" "$way"
python=$env/bin/python
PROOF=$IMPORT
if helps_itself; then echo "SKIP: $MAY_WORK"; exit 77; fi
# An archive without its sources cannot be built by anything: what it was unpacked for must import.
[ "$fault" != sources_archive_without_csrc ] || PROOF='import sys; sys.path.remove(""); from mamba_ssm import Mamba'
# The call goes on into the scan, where the small module of these tests would stop it: scankit's own computes it.
case $fault in
  signature_mismatch_* | silent_none_*)
    rm "$(module_file "$env")"
    "$scankit" build --python "$python" --module selective_scan_cuda --out "$(fx_site "$python")/" >"$work/build.txt" 2>&1 ||
      expect_fail "no selective_scan_cuda was built: $(tail -n 1 "$work/build.txt")"
    ;;
esac
# On a loaded machine an import takes longer than the doctor waits.
[[ $DOCTOR == *--timeout* ]] || DOCTOR+=" --timeout ${PRINTED_TIMEOUT:-180}"
# torch's CUDA libraries come from the toolkit of this machine, as in the shared environment, or are there already.
case $fault in torch_incomplete_* | compound_torch_* | sources_without_torch) export PIP_NO_DEPS=1 ;; esac
[ "$fault" != sources_without_torch ] || export PIP_NO_INDEX=1
# pip's own isolation is what is wrong: the command that was printed is the build itself, and what it made must import.
[ "$fault" != sources_isolated_pip ] || PROOF='import torch, scan_cuda'
export python IMPORT PROOF work STARTS_IN DOCTOR scankit

result() { # WORD [REASON]: the end
  printf '%s\t%s\t%s\t%s\t%s\n' "$fault" "$cause" "${command:--}" "$1" "${2:-}" | tee "$row"
  cp "$row" "$work/printed.row"
  rm -rf "$env"
  case $1 in worked | nobody) exit 0 ;; *) exit 1 ;; esac
}
last_words() { grep -v '^ *$' "$1" | tail -n 1 | tr '\t' ' ' | cut -c 1-160; }

# shellcheck disable=SC2016  # the inner shell's
failing='cd "$STARTS_IN" && timeout 300 "$python" -c'
# shellcheck disable=SC2086
env $PREPARE bash -c "$failing \"\$IMPORT\"" >"$work/import.txt" 2>&1 && expect_fail "$fault does not break: $IMPORT"
[ -z "$ERROR" ] || grep -qE "$ERROR" "$work/import.txt" || expect_fail "the interpreter's error is not '$ERROR'"

# shellcheck disable=SC2086
(cd "$STARTS_IN" && env $PREPARE "$scankit" doctor --python "$python" --report "json=$work/before.json" $DOCTOR) \
  >"$work/before.txt" 2>"$work/before.err" || true
cause=$(jq -r '.root.cause // (.findings[0].cause) // "-"' "$work/before.json")
command=$(jq -r '.repair // ""' "$work/before.json")
if [ -z "$command" ]; then
  reason=$(nobody_can "$fault")
  [ -n "$reason" ] || result none "no command is printed"
  says=${reason#*$'\t'} reason=${reason%%$'\t'*}
  grep -qE -- "$says" "$work/before.txt" || result none "the report does not say who has to do what ($says)"
  result nobody "$reason"
fi
[ -z "$(nobody_can "$fault")" ] || result none "a command is printed: take $fault out of printed_nobody.sh"
[ "$(tail -n 1 "$work/before.txt")" = "$command" ] || result none "the last line is not the command: $(tail -n 1 "$work/before.txt")"

run=$command
case $command in *' fix '*) run+=' --yes' ;; esac
cat >"$work/again.sh" <<SH
cd "\$STARTS_IN" || exit 1
timeout 300 "\$python" -c "\$PROOF" >"\$work/again.txt" 2>&1
echo \$? >"\$work/again.status"
"\$scankit" doctor --python "\$python" --json \$DOCTOR >"\$work/after.json" 2>"\$work/after.err"
SH
cat >"$work/shell.sh" <<SH
cd "\$STARTS_IN" || exit 1
$run
echo \$? >"\$work/command.status"
SH
case $command in
  export\ * | unset\ *) echo ". '$work/again.sh'" >>"$work/shell.sh" ;;
esac
# shellcheck disable=SC2086
env $PREPARE timeout 1500 bash "$work/shell.sh" </dev/null >"$work/command.txt" 2>&1 || true
# shellcheck disable=SC2086
[ -e "$work/again.status" ] || env $PREPARE bash "$work/again.sh" || true
# Of several repairs one may fail and say so by its status; what decides is what was broken.
status=$(cat "$work/command.status" 2>/dev/null || echo none)
[ "$(cat "$work/again.status")" = 0 ] ||
  result failed "it still fails: $(last_words "$work/again.txt"); the command ended with status $status: $(last_words "$work/command.txt")"
# A warning may stay: of sources that name no torch, say, which are built nevertheless.
jq -e --arg cause "$cause" 'all(.findings[]; .cause != $cause or .severity != "error")' "$work/after.json" >/dev/null ||
  result failed "the doctor still finds $cause"
[ "$status" = 0 ] || result worked "with status $status: $(last_words "$work/command.txt")"
result worked

# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by the scripts for a machine with a GPU, with their arguments:  . begin.sh OPTION "$@"
# They take --scankit FILE, --python P and OPTION, whose value is then in $option. Ends with 77 where torch sees no GPU.
script=$(basename "$0") own=$1
shift
scankit='' python=python3 option=''
# shellcheck disable=SC2034  # $option is for the script
while [ $# -gt 0 ]; do
  case "$1" in
    --scankit) scankit=$(readlink -f "$2"); shift 2 ;;
    --python) python=$2; shift 2 ;;
    "$own") option=$2; shift 2 ;;
    *) echo "$script: unknown option $1 (known: --scankit FILE, --python P, $own VALUE)" >&2; exit 2 ;;
  esac
done
[ -x "$scankit" ] || { echo "$script: --scankit must name the program to test" >&2; exit 2; }
"$python" -c 'import torch, sys; sys.exit(0 if torch.cuda.is_available() else 77)' ||
  { rc=$?; [ $rc = 77 ] && echo "SKIPPED: torch finds no GPU"; exit $rc; }

# step COMMAND...: the first that fails ends the script with its status.
step() {
  echo "== $*"
  local begin=$SECONDS
  "$@" || { local rc=$?; echo "$script: ended with $rc: $*"; exit $rc; }
  echo "== $((SECONDS - begin)) s"
}

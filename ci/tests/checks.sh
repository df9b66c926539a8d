# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Sourced by the end-to-end tests of this folder. $work is a folder for them; the last command's output lies in $work/out and
# $work/err.
work=$(mktemp -d)
trap 'umount "$work/disk" 2>/dev/null || true; rm -rf "$work"' EXIT
failures=0
check() {  # check WHAT COMMAND...
  local what=$1
  shift
  if "$@"; then echo "ok: $what"; else echo "FAILED: $what"; failures=$((failures + 1)); fi
}
status_is() {  # status_is EXPECTED COMMAND...
  local expected=$1 got=0
  shift
  "$@" >"$work/out" 2>"$work/err" </dev/null || got=$?
  [ "$got" = "$expected" ] || { echo "status $got, not $expected: $*"; cat "$work/out" "$work/err"; false; }
}
says() { grep -qF -- "$1" "$work/out" "$work/err"; }

# skip_without_torch PYTHON
skip_without_torch() {
  if [ ! -x "$1" ] || ! "$1" -c 'import torch' 2>/dev/null; then
    echo "SKIPPED: no Python with torch (SCANKIT_TEST_PYTHON)"
    exit 77
  fi
}

# venv_beside PYTHON FOLDER: an environment of its own that sees the torch of PYTHON through a .pth file, so that it costs
# nothing. Sets $site and $suffix, the ending of that Python's extensions.
venv_beside() {
  rm -rf "$2"
  "$1" -m venv --without-pip "$2"
  site=$("$2/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
  "$1" -c 'import torch, os; print(os.path.dirname(os.path.dirname(torch.__file__)))' >"$site/torch.pth"
  # shellcheck disable=SC2034  # for the test
  suffix=$("$2/bin/python" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
}
state() { (cd "$site" && find . -type f ! -name '*.pyc' -exec sha256sum {} + | sort); }

end() { [ "$failures" = 0 ] || { echo "$failures failed"; exit 1; }; }
# run_cases [CASE...]: the functions case_CASE, all of them where none is named.
run_cases() {
  local name cases=("$@")
  [ $# -gt 0 ] || mapfile -t cases < <(declare -F | sed -n 's/^declare -f case_//p')
  for name in "${cases[@]}"; do
    echo "-- $name"
    "case_$name"
  done
  end
}

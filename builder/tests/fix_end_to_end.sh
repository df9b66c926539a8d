#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fix, pip, restore and SIGKILL in a real environment with a real torch:
#   fix_end_to_end.sh SCANKIT PYTHON_WITH_TORCH
# The environment is a venv of its own that sees the other one's torch through a .pth file, so that each costs nothing.
set -euo pipefail
scankit=$1
# shellcheck source=builder/tests/fix.sh
. "$(dirname "$0")/fix.sh"
python=${SCANKIT_TEST_PYTHON:-$2}
skip_without_torch "$python"
fresh_environment() {
  venv_beside "$python" "$env"
  stale=$site/selective_scan_cuda$suffix
  printf '<!DOCTYPE html><html>not found</html>' >"$stale"
  ln -f "$stale" "$work/hard-link"
}
imports() { "$env/bin/python" -c 'import torch, selective_scan_cuda as m; print(m.__file__)' 2>/dev/null; }
# shellcheck disable=SC2120  # a case may add options
fix() { "$scankit" fix --python "$env/bin/python" --arch sm_90 --yes "$@"; }

fresh_environment
old=$(state)
check "a dry run changes nothing" status_is 0 "$scankit" fix --python "$env/bin/python" --dry-run
# shellcheck disable=SC2016  # $SITE as it is printed
check "the plan shortens the directory of packages" says '$SITE/selective_scan_cuda.abi3.so'
check "and says which it is" says "\$SITE = $site"
check "but not in a command" says "scankit restore --python $env/bin/python"
check "and leaves no trace" test ! -e "$env/.scankit" -a "$(state)" = "$old"
check "without --yes and without a terminal nothing happens" status_is 1 "$scankit" fix --python "$env/bin/python"
check "and it says how to go on" says "--yes"
check "fix repairs" status_is 0 fix
new=$(state)
check "the module imports from its place" test "$(imports)" = "$site/selective_scan_cuda.abi3.so"
check "the stale file is kept" sh -c "cat $env/.scankit/backup/*/* | grep -q DOCTYPE"
check "a hard link to it still has its bytes" grep -q DOCTYPE "$work/hard-link"
check "a second fix has nothing to do" status_is 0 fix
check "and says so" says "nothing to do"
check "another architecture is a new build" status_is 0 "$scankit" fix --python "$env/bin/python" --arch compute_75 --yes
check "restore goes back one step" status_is 0 restore
check "to the first fix" test "$(state)" = "$new"
check "restore goes back to the start" status_is 0 restore
check "byte by byte" test "$(state)" = "$old"
check "a third restore is no error" status_is 0 restore
check "and says that nothing is left" says "nothing to restore"

pip() { "$python" -m pip --disable-pip-version-check --python "$env/bin/python" "$@"; }
if "$python" -m pip --version >/dev/null 2>&1; then
  check "fix again" status_is 0 fix
  check "pip lists it" sh -c "PIP_QUIET=0 '$python' -m pip --python '$env/bin/python' list 2>/dev/null | grep -q scankit-selective-scan-cuda"
  check "RECORD holds the hash of every file" "$env/bin/python" - "$site" <<'PROGRAM'
import base64, csv, glob, hashlib, os, sys
site, = sys.argv[1:]
record, = glob.glob(site + '/scankit_selective_scan_cuda-*.dist-info/RECORD')
listed = set()
for path, hashed, size in csv.reader(open(record)):
    listed.add(path)
    data = open(os.path.join(site, path), 'rb').read()
    if path.endswith('/RECORD'):
        continue
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
    assert hashed == 'sha256=' + digest and int(size) == len(data), path
present = {os.path.relpath(f, site) for f in glob.glob(os.path.dirname(record) + '/*')}
assert listed == present | {'selective_scan_cuda.abi3.so'}, listed ^ present
PROGRAM
  check "pip uninstalls it" status_is 0 pip uninstall -y scankit-selective-scan-cuda
  check "and leaves none of its files" sh -c "! ls '$site' | grep -q scankit -- && test ! -e '$site/selective_scan_cuda.abi3.so'"
  check "restore still brings the old file back" status_is 0 restore
  check "byte by byte after pip" test "$(state)" = "$old"
fi

target=$work/elsewhere
check "fix into a folder" status_is 0 fix --target "$target"
check "and how to put it on the path" says "PYTHONPATH=$target"
check "the environment itself is untouched" test "$(state)" = "$old"

after_kill() {  # after_kill WHERE: old or new at once, the old one after the next run
  local now
  now=$(imports || echo broken)
  check "$1: imports the old file or the new" test "$now" = broken -o "$now" = "$site/selective_scan_cuda.abi3.so"
  check "$1: restore leaves a whole state" status_is 0 restore
  check "$1: which is the old one" test "$(state)" = "$old"
}
# The journal and the staging are killed at every call by transaction_test; here the steps that the environment sees.
if strace -o /dev/null true 2>/dev/null; then
  for n in 1 2 3 4 5 6 7 8 9; do
    fresh_environment
    old=$(state)
    status=0
    # Only scankit itself is traced: its children are the compiler and Python.
    strace -o /dev/null -e "inject=renameat2:signal=KILL:when=$n" "$scankit" fix --python "$env/bin/python" --arch sm_90 \
      --yes >/dev/null 2>&1 </dev/null || status=$?
    [ "$status" = 137 ] || break
    after_kill "killed at step $n"
  done
  check "killed at each of three steps" test "$n" = 4
else
  echo "note: no strace that may trace here: the kills between the steps did not run"
fi
fresh_environment
old=$(state)
# Not by the function: that would be a shell, and its death is not scankit's.
"$scankit" fix --python "$env/bin/python" --arch sm_90 --yes >/dev/null 2>"$work/progress" </dev/null &
fixer=$!
until grep -q verifying "$work/progress" || ! kill -0 "$fixer" 2>/dev/null; do :; done
kill -9 "$fixer" 2>/dev/null || true
wait "$fixer" 2>/dev/null || true
after_kill "killed while it verified"
check "and the next fix repairs" status_is 0 fix

# A clone of a package's repository: nothing that is installed needs the module, files of the current folder do.
fresh_environment
rm "$stale"
mkdir -p "$work/clone/causal_conv1d"
echo 'import causal_conv1d_cuda' >"$work/clone/causal_conv1d/__init__.py"
cd "$work/clone"
check "in a clone a fix installs nothing unasked" status_is 0 "$scankit" fix --python "$env/bin/python" --yes
check "and says so" says "nothing to do"
check "asked for, it plans what its files import" status_is 0 "$scankit" fix --python "$env/bin/python" --module causal_conv1d_cuda --dry-run
check "and says so" says "causal_conv1d_cuda.abi3.so for"
end

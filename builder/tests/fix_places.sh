#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where and under what a fix may run: other folders, other machines, disks that are full or read-only, two at once, Ctrl-C:
#   fix_places.sh SCANKIT PYTHON_WITH_TORCH [CASE...]
set -euo pipefail
# shellcheck source=builder/tests/checks.sh
. "$(dirname "$0")/checks.sh"
scankit=$1
python=${SCANKIT_TEST_PYTHON:-$2}
shift 2
skip_without_torch "$python"
export XDG_CACHE_HOME=${SCANKIT_FIX_CACHE:-$work/cache}
unset VIRTUAL_ENV PYTHONPATH
env=$work/env
machine=$(cd "$(dirname "$0")/../../doctor/tests/machines/h200_torch211" && pwd)/snapshot.json
fresh() {
  venv_beside "$python" "$env"
  stale=$site/causal_conv1d_cuda$suffix
  printf '<!DOCTYPE html>' >"$stale"
  old=$(state)
}
# The smaller of the modules, and PTX alone: a build of seconds.
# shellcheck disable=SC2120  # a case may add options
fix() { "$scankit" fix --python "$env/bin/python" --module causal_conv1d_cuda --arch compute_75 --yes "$@"; }
# shellcheck disable=SC2120
restore() { "$scankit" restore --python "$env/bin/python" "$@"; }
nothing_changed() { [ "$(state)" = "$old" ] && [ -z "$(ls -A "$env/.scankit/staging" 2>/dev/null)" ]; }

case_json() {
  fresh
  check "the plan as JSON" status_is 0 "$scankit" fix --python "$env/bin/python" --arch sm_90 --dry-run --json
  check "is JSON alone, with its step" jq -e '.state == "planned" and .steps[0].kind == "install_module" and .steps[0].module ==
    "causal_conv1d_cuda" and .steps[0].cause == "corrupt_binary" and (.steps[0].moves | length) == 1' "$work/out"
  check "and says what is not proven here" jq -e '(.unproven | length) == 1 and (.proof | test("scankit validate"))' "$work/out"
  check "declined is a state" status_is 1 "$scankit" fix --python "$env/bin/python" --json
  check "with nothing changed" jq -e '.state == "declined"' "$work/out"
  check "nothing was" nothing_changed
}

case_other_machine() {
  fresh
  check "for the GPU of another machine" status_is 0 "$scankit" fix --python "$env/bin/python" --for "$machine" --yes
  check "it says what was not proven" says "not proven here: that the code for sm_90 runs"
  check "and what proves it there" says "to prove it there: scankit validate --quick --python $env/bin/python --module causal_conv1d_cuda"
  check "the module has that GPU's code" "$env/bin/python" -c 'import torch, causal_conv1d_cuda as m
assert {image["sm"] for image in m.scankit_info()["images"]} == {90}, m.scankit_info()'
  check "restore" status_is 0 restore
  check "byte by byte" nothing_changed
  check "not with --arch beside it" status_is 2 fix --for "$machine"
}

case_targets() {
  fresh
  local base=$work/user home=$work/home
  mkdir -p "$home"
  # A venv has no user site; the Python below it has.
  check "a venv has no user site" status_is 1 fix --target user
  check "and says so" says "does not use the user site"
  check "into a folder" status_is 0 fix --target "$work/elsewhere"
  check "with the line that puts it on the path" says "export PYTHONPATH=$work/elsewhere"
  check "the environment is untouched" nothing_changed
  check "it imports from there" env PYTHONPATH="$work/elsewhere" "$env/bin/python" -c "import torch, causal_conv1d_cuda as m; assert m.__file__.startswith('$work/elsewhere/')"
  check "and goes again" status_is 0 restore --target "$work/elsewhere"
  check "all of it" test -z "$(find "$work/elsewhere" -name '*.so')"
  local plain
  plain=$("$env/bin/python" -c 'import os, sys; print(os.path.join(sys.base_prefix, "bin", "python%d.%d" % sys.version_info[:2]))')
  export HOME=$home PYTHONUSERBASE=$base
  local usersite
  usersite=$("$plain" -c 'import site; print(site.getusersitepackages())')
  mkdir -p "$usersite" && cp "$site/torch.pth" "$usersite/"
  if "$plain" -c 'import torch' 2>/dev/null; then
    check "into the user site" status_is 0 "$scankit" fix --python "$plain" --module causal_conv1d_cuda --arch compute_75 --yes --target user
    check "it imports from there" "$plain" -c "import torch, causal_conv1d_cuda as m; assert m.__file__.startswith('$usersite/')"
    check "and goes again" status_is 0 "$scankit" restore --python "$plain" --target user
    check "leaving torch's line" test "$(ls "$usersite")" = torch.pth
  fi
}

case_two_at_once() {
  fresh
  fix >"$work/one" 2>&1 &
  local one=$!
  fix >"$work/two" 2>&1 &
  local two=$! status=0
  wait "$one" || status=$?
  wait "$two" || status=$((status * 10 + $?))
  echo "two at once ended with $status"
  # One wins; the other was refused, or came when all was done.
  check "one of the two repairs" grep -qE 'repaired|nothing to do' "$work/one" "$work/two"
  check "the other harms nothing" sh -c "grep -qE 'repaired|nothing to do|another scankit' '$work/one' && grep -qE 'repaired|nothing to do|another scankit' '$work/two'"
  check "the module works" "$env/bin/python" -c "import torch, causal_conv1d_cuda"
  while [ "$(state)" != "$old" ] && restore >"$work/out" 2>&1; do :; done
  check "and can be taken back" nothing_changed
}

case_interrupted() {
  fresh
  local status=0 signal
  for signal in INT TERM; do
    # A shell lets what it starts in the background ignore SIGINT; env puts it back.
    env --default-signal=INT "$scankit" fix --python "$env/bin/python" --module causal_conv1d_cuda --arch compute_75 --yes >/dev/null \
      2>"$work/progress" </dev/null &
    local fixer=$!
    until grep -q '^verifying' "$work/progress" || ! kill -0 "$fixer" 2>/dev/null; do sleep 0.05; done
    kill -$signal "$fixer"
    status=0
    wait "$fixer" || status=$?
    check "$signal ends it with its status" test "$status" = $((128 + $(kill -l $signal)))
    check "$signal: and it has undone itself" nothing_changed
    check "$signal: it says so" grep -q 'nothing was changed' "$work/progress"
  done
}

# on_disk SIZE: the environment on a small file system of its own
on_disk() {
  mkdir -p "$work/disk"
  mount -t tmpfs -o "size=$1" none "$work/disk" 2>/dev/null || { echo "note: no mount may be made here: not checked" && return 1; }
  env=$work/disk/env
}
off_disk() { umount "$work/disk"; env=$work/env; }

case_full_disk() {
  on_disk 64m || return 0
  fresh
  local free kept
  check "with room it works" status_is 0 fix
  check "and goes back" status_is 0 restore
  # From nothing to nearly enough, in steps: each point of the fix is the one that fails.
  for kept in 0 4 16 64 200 400 700 1000 1300 1700 2500 8000; do
    free=$(df --output=avail -k "$work/disk" | tail -1)
    [ "$free" -gt "$kept" ] && head -c $(((free - kept) * 1024)) /dev/zero >"$work/disk/filler" 2>/dev/null
    local status=0
    fix >"$work/out" 2>"$work/err" </dev/null || status=$?
    rm -f "$work/disk/filler"
    if [ "$status" = 0 ]; then
      check "$kept KiB are enough, and it goes back" status_is 0 restore
    else
      check "$kept KiB: it says why" grep -qiE 'no space|space left' "$work/err"
      "$scankit" restore --python "$env/bin/python" >/dev/null 2>&1 || true
    fi
    check "$kept KiB: the old state" nothing_changed
  done
  off_disk
}

case_read_only() {
  on_disk 64m || return 0
  fresh
  mount -o remount,ro "$work/disk"
  check "a read-only disk is refused" status_is 1 fix
  check "with the way out" says "--target"
  check "before anything" nothing_changed
  mount -o remount,rw "$work/disk"
  check "and repaired when it can be" status_is 0 fix
  mount -o remount,ro "$work/disk"
  check "restore on it fails" status_is 1 restore
  mount -o remount,rw "$work/disk"
  check "and works later" status_is 0 restore
  check "byte by byte" nothing_changed
  off_disk
}

# A shadowing copy in a folder of PYTHONPATH on another disk: nothing can be renamed from there into the backup.
case_other_disk() {
  mkdir -p "$work/disk"
  mount -t tmpfs -o size=16m none "$work/disk" 2>/dev/null || { echo "note: no mount may be made here: not checked" && return 0; }
  fresh
  printf '<!DOCTYPE html>' >"$work/disk/causal_conv1d_cuda$suffix"
  export PYTHONPATH=$work/disk
  check "a copy on another disk is moved beside itself" status_is 0 fix
  check "the module works" "$env/bin/python" -c "import torch, causal_conv1d_cuda"
  check "restore" status_is 0 restore
  check "puts it back" grep -q DOCTYPE "$work/disk/causal_conv1d_cuda$suffix"
  unset PYTHONPATH
  umount "$work/disk"
}

cases=("$@")
[ $# -gt 0 ] || mapfile -t cases < <(declare -F | sed -n 's/^declare -f case_//p')
for name in "${cases[@]}"; do
  echo "-- $name"
  "case_$name"
done
[ "$failures" = 0 ] || { echo "$failures failed"; exit 1; }

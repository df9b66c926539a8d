#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Where and under what a fix may run: other folders, other machines, disks that are full or read-only, two at once, Ctrl-C:
#   fix_places.sh SCANKIT PYTHON_WITH_TORCH [CASE...]
set -euo pipefail
scankit=$1
# shellcheck source=builder/tests/fix.sh
. "$(dirname "$0")/fix.sh"
python=${SCANKIT_TEST_PYTHON:-$2}
shift 2
skip_without_torch "$python"
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
  check "it says what was not proven" says "not tested: sm_90 code"
  check "and what proves it there" says "to test it on that GPU: scankit validate --quick --python $env/bin/python --module causal_conv1d_cuda"
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

# The operating system's own Python, which its package manager keeps (PEP 668).
case_externally_managed() {
  local system=/usr/bin/python3 usersite
  export HOME=$work/home PYTHONUSERBASE=$work/user_of_the_system
  mkdir -p "$HOME"
  if ! "$system" -c 'import os, sysconfig; open(os.path.join(sysconfig.get_path("stdlib"), "EXTERNALLY-MANAGED"))' 2>/dev/null; then
    echo "SKIPPED: no Python here is the operating system's" && exit 77
  fi
  usersite=$("$system" -c 'import site; print(site.getusersitepackages())')
  mkdir -p "$usersite"
  "$python" -c 'import torch, os; print(os.path.dirname(os.path.dirname(torch.__file__)))' >"$usersite/torch.pth"
  "$system" -c 'import torch' 2>/dev/null || { echo "SKIPPED: this torch is for another Python than $system" && exit 77; }
  local fix=("$scankit" fix --python "$system" --module causal_conv1d_cuda --arch compute_75)
  touch "$work/now"
  check "no package is installed into it" status_is 1 "$scankit" fix --python "$system" --package mamba-ssm --yes
  check "with the reason" says "is managed by the operating system's package manager (EXTERNALLY-MANAGED)"
  check "a module goes to the user site" status_is 0 "${fix[@]}" --yes
  check "with the reason" says "is managed by the operating system's package manager (EXTERNALLY-MANAGED), so it is installed into $usersite"
  check "it imports from there" "$system" -c "import torch, causal_conv1d_cuda as m; assert m.__file__.startswith('$usersite/')"
  check "and goes again" status_is 0 "$scankit" restore --python "$system"
  check "leaving torch's line" test "$(ls "$usersite")" = torch.pth
  check "nothing of the system's was touched" test -z "$(find "$("$system" -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')" \
    /usr/lib/python3/dist-packages /usr/local/lib/python3* /usr/.scankit -newer "$work/now" ! -name '*.pyc' ! -name __pycache__ 2>/dev/null)"
}

# The classic module, linked with this torch, in the same transaction: over a broken file, and over our universal one.
case_flavor_torch() {
  fresh
  local module=causal_conv1d_cuda record
  flavor_of() { "$env/bin/python" -c "import torch, $module as m; print(m.__file__, m.scankit_info()['flavor'])"; }
  check "fix --flavor torch" status_is 0 fix --flavor torch
  check "under the name that its Python wants" test "$(flavor_of)" = "$site/$module$suffix torch"
  record=$(echo "$site"/scankit_causal_conv1d_cuda-*.dist-info)
  check "recorded as this Python's own" grep -qE '^Tag: cp3[0-9]+-cp3[0-9]+-linux_x86_64$' "$record/WHEEL"
  check "with its file" grep -q "^$module$suffix,sha256=" "$record/RECORD"
  check "a second one has nothing to do" status_is 0 fix --flavor torch
  check "and says so" says "nothing to do"
  check "restore" status_is 0 restore
  check "byte by byte" nothing_changed
  check "the universal one" status_is 0 fix
  local universal
  universal=$(state)
  check "is exchanged where the other is asked for" status_is 0 fix --flavor torch
  check "and is imported no more" test "$(flavor_of)" = "$site/$module$suffix torch"
  check "nor lies beside it" test ! -e "$site/$module.abi3.so"
  check "restore" status_is 0 restore
  check "goes back to it" test "$(state)" = "$universal"
  check "into a folder" status_is 0 fix --flavor torch --target "$work/torch"
  check "it imports from there" env PYTHONPATH="$work/torch" "$env/bin/python" -c "import torch, $module as m; assert m.__file__ == '$work/torch/$module$suffix'"
  check "another flavor is a usage error" status_is 2 fix --flavor classic
  check "without a C++ compiler it is refused before anything" status_is 1 env -u CXX PATH="$work/none" "$scankit" fix \
    --python "$env/bin/python" --module $module --arch compute_75 --flavor torch --target "$work/other" --yes
  check "with what it needs" says "compiler"
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
    rm -f "$work/progress"  # that of the signal before says "verifying" already
    # A shell lets what it starts in the background ignore SIGINT; env puts it back.
    env --default-signal=INT "$scankit" fix --python "$env/bin/python" --module causal_conv1d_cuda --arch compute_75 --yes >/dev/null \
      2>"$work/progress" </dev/null &
    local fixer=$!
    until grep -qs '^verifying' "$work/progress" || ! kill -0 "$fixer" 2>/dev/null; do sleep 0.05; done
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
      restore >/dev/null 2>&1 || true
    fi
    check "$kept KiB: the old state" nothing_changed
  done
  off_disk
}

case_read_only() {
  on_disk 64m || return 0
  fresh
  mount -o remount,ro "$work/disk"
  export HOME=$work/home XDG_DATA_HOME=$work/home/data SHELL=/bin/bash
  check "on a read-only disk the module goes to the user's own folder" status_is 0 fix
  check "with the reason" says "Read-only file system"
  check "and it is taken back from there" status_is 0 restore
  check "all of it" test -z "$(find "$work/home" -name '*.so')"
  check "the disk is as it was" nothing_changed
  mount -o remount,rw "$work/disk"
  check "and repaired when it can be" status_is 0 fix
  mount -o remount,ro "$work/disk"
  check "restore on it fails" status_is 1 restore
  check "and says why" says "is not writable"
  mount -o remount,rw "$work/disk"
  check "and works later" status_is 0 restore
  check "byte by byte" nothing_changed
  off_disk
}

# as_nobody COMMAND...: as a user who may write nothing of root's. Root's own folders are often closed to others (the Python
# lies in one here): in a mount namespace of its own each of those is a new folder that holds the same things.
as_nobody() {
  if [ "$(id -u)" != 0 ]; then
    "$@"
    return
  fi
  local closed=() folder place
  for place in "$(readlink -f "$python")" "$("$python" -c 'import torch; print(torch.__file__)')" "$work/."; do
    for folder in $(while [ "$place" != / ]; do place=$(dirname "$place") && echo "$place"; done | tac); do
      [ "$folder" = "$work" ] || [ -n "$(find "$folder" -maxdepth 0 -perm -o=x)" ] || closed+=("$folder")
    done
  done
  chmod 755 "$work"
  # shellcheck disable=SC2016
  unshare -m bash -c 'IFS=: read -ra closed <<<"$1" && shift
    for folder in "${closed[@]}"; do
      mkdir -p /mnt/real && mount --rbind "$folder" /mnt/real && mount -t tmpfs -o mode=755 none "$folder"
      for place in /mnt/real/* /mnt/real/.[!.]*; do
        [ -d "$place" ] && mkdir "$folder/${place##*/}" && mount --rbind "$place" "$folder/${place##*/}"
      done
    done
    exec setpriv --reuid 65534 --regid 65534 --clear-groups "$@"' - "$(IFS=: && echo "${closed[*]}")" "$@"
}
# What the last fix printed, each line in its order and as it stands, in fresh shells of that user.
works_as_printed() {
  local for_good shell=(as_nobody env -i HOME="$work/home" PATH=/usr/bin:/bin XDG_CACHE_HOME="$work/home/cache")
  line=$(sed -n 's/^in this shell, first run: //p' "$work/out")
  for_good=$(sed -n 's/^once, for all new shells: //p' "$work/out")
  local import="'$env/bin/python' -c 'import torch, causal_conv1d_cuda as m; print(m.__file__)'"
  check "the line comes before what needs it" sh -c "grep -nE '^(in this shell|to test it on that GPU)' '$work/out' | head -n 1 | grep -q 'in this shell'"
  check "it works in this shell" status_is 0 "${shell[@]}" sh -c "$line && $import"
  check "from the user's folder" grep -q "^$work/home/.local/share/scankit/envs/env-[0-9a-f]*/causal_conv1d_cuda.abi3.so" "$work/out"
  # shellcheck disable=SC2016  # for the inner shell
  check "what was on the path stays" status_is 0 "${shell[@]}" PYTHONPATH=/before sh -c "$line"'; case $PYTHONPATH in *:/before) ;; *) exit 1 ;; esac'
  check "the line for good" status_is 0 "${shell[@]}" sh -c "$for_good"
  check "works in a new shell" status_is 0 "${shell[@]}" bash -ic "$import"
  check "the doctor is content there" status_is 0 "${shell[@]}" bash -ic "'$scankit' doctor --python '$env/bin/python'"
  check "and does not warn of a copy that this user cannot move" sh -c "! grep -q 'WARNING' '$work/out'"
}

case_no_access() {
  if [ "$(id -u)" = 0 ] && ! unshare -m true 2>/dev/null; then
    echo "note: nobody else can be played here: not checked" && return
  fi
  fresh
  mkdir "$work/home" "$work/theirs" && chmod 777 "$work/home" "$work/theirs"
  local user=(as_nobody env -u XDG_DATA_HOME HOME="$work/home" SHELL=/bin/bash XDG_CACHE_HOME="$work/home/cache" "$scankit") line
  local fix=("${user[@]}" fix --python "$env/bin/python" --module causal_conv1d_cuda --arch compute_75 --yes)
  chmod -R a-w "$env"
  # What the doctor prints is the command without --target.
  check "where one may not write, the module goes to a folder of one's own" status_is 0 "${fix[@]}"
  check "with the reason" says "cannot write to $site: Permission denied"
  check "the environment is untouched" nothing_changed
  check "of it there is no state either" test ! -e "$env/.scankit"
  works_as_printed
  check "a second fix, in a shell that knows nothing of it, has nothing to do" status_is 0 "${fix[@]}"
  check "and says the line again" grep -qxF "in this shell, first run: $line" "$work/out"
  check "the user site of a venv is none" status_is 1 "${fix[@]}" --target user
  check "it says what to do" says "omit --target"
  check "a package cannot go there" status_is 1 "${user[@]}" fix --python "$env/bin/python" --package mamba-ssm --yes
  check "and the reason is said" says "cannot write to $site"
  check "restore finds it by itself" status_is 0 "${user[@]}" restore --python "$env/bin/python"
  check "all of it" test -z "$(find "$work/home/.local" -name '*.so')"
  check "a folder that is named" status_is 0 "${fix[@]}" --target "$work/theirs"
  check "it imports from there" as_nobody env PYTHONPATH="$work/theirs" "$env/bin/python" -c "import torch, causal_conv1d_cuda as m; assert m.__file__.startswith('$work/theirs/')"
  check "the environment is untouched" nothing_changed
  chmod -R u+w "$env"
  # As its owner, but with a file in the way that lies in somebody else's folder.
  [ "$(id -u)" = 0 ] || return 0
  chown -R 65534:65534 "$env"
  mkdir "$work/roots" && printf '<!DOCTYPE html>' >"$work/roots/causal_conv1d_cuda$suffix"
  check "a shadowing copy in a folder that one may not write is refused" status_is 1 as_nobody env PYTHONPATH="$work/roots" \
    HOME="$work/home" "$scankit" fix --python "$env/bin/python" --module causal_conv1d_cuda --arch compute_75 --yes
  check "by its name" says "cannot move $work/roots/causal_conv1d_cuda$suffix away"
  check "with what to do" says "move it away yourself"
  check "and the environment is as it was" nothing_changed
  check "without it the owner repairs" status_is 0 "${fix[@]}"
  check "restore is the owner's too" status_is 0 "${user[@]}" restore --python "$env/bin/python"
  check "byte by byte" nothing_changed
  check "root leaves another user's environment alone" status_is 1 fix
  check "and says why" says "belongs to user 65534"
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
  check "it goes back only where that is agreed to" status_is 1 restore
  check "since it lies elsewhere" says "outside the environment"
  check "restore" status_is 0 restore --yes
  check "puts it back" grep -q DOCTYPE "$work/disk/causal_conv1d_cuda$suffix"
  unset PYTHONPATH
  umount "$work/disk"
}

run_cases "$@"
